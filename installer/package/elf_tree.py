#!/usr/bin/env python3
"""The shared libraries of a tree of programs that is to run anywhere. Standard library, readelf, ldd, patchelf.

  elf_tree.py bring TREE DIRECTORY                  copies what TREE's files need of this system into DIRECTORY
  elf_tree.py check TREE --glibc 2.35 --glibcxx 3.4.30
      0: what TREE's files need is in TREE or in SYSTEM, of no newer versions, found by run paths that begin with $ORIGIN,
      and no file asks for a processor above x86-64-v2
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

# Every x86-64 Linux with a C++ program on it has these; whoever brought another C library or loader along would mix two.
SYSTEM = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|resolv|anl|stdc\+\+|gcc_s))\.so\.\d+$")
ISA_TOO_NEW = re.compile(r"x86 ISA needed:.*x86-64-v[34]")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def elf_files(tree):
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def dynamic(path):
    """(needed names, run paths)"""
    text = output_of("readelf", "-dW", str(path))
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    paths = [part for found in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text) for part in found.split(":") if part]
    return needed, paths


def bring(tree, directory):
    directory.mkdir(parents=True, exist_ok=True)
    have = {path.name for path in elf_files(tree)}
    for program in list(elf_files(tree)):
        for name, place in re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", str(program)), re.MULTILINE):
            if name in have or SYSTEM.match(name):
                continue
            target = directory / name
            shutil.copyfile(pathlib.Path(place).resolve(), target)
            target.chmod(0o644)
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", str(target)], check=True)
            have.add(name)


def version_of(text):
    return tuple(int(part) for part in text.split("."))


def finds(path, name, run_paths, tree):
    for run_path in run_paths:
        directory = pathlib.Path(run_path.replace("$ORIGIN", str(path.parent))).resolve()
        if (directory / name).exists() and tree in directory.parents:
            return True
    return False


def complaints(path, tree, limits):
    needed, run_paths = dynamic(path)
    for run_path in run_paths:
        if not run_path.startswith("$ORIGIN"):
            yield f"its run path {run_path} is of the machine that built it"
    for name in needed:
        if not SYSTEM.match(name) and not finds(path, name, run_paths, tree):
            yield f"needs {name}, which is neither in the tree on its run path nor the system's"
    for kind, version in set(re.findall(r"Name: (GLIBC|GLIBCXX)_([\d.]+)", output_of("readelf", "-VW", str(path)))):
        if version_of(version) > version_of(limits[kind]):
            yield f"needs {kind}_{version}, newer than {limits[kind]}"
    if ISA_TOO_NEW.search(output_of("readelf", "-nW", str(path))):
        yield "asks for a processor above x86-64-v2"


def check(tree, limits):
    files = list(elf_files(tree))
    found = [f"{path.relative_to(tree)}: {what}" for path in files for what in complaints(path, tree, limits)]
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"{len(files)} programs and libraries stand on glibc {limits['GLIBC']}, libstdc++ {limits['GLIBCXX']}, x86-64-v2")
    return 1 if found or not files else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    bringing = commands.add_parser("bring")
    bringing.add_argument("tree", type=pathlib.Path)
    bringing.add_argument("directory", type=pathlib.Path)
    checking = commands.add_parser("check")
    checking.add_argument("tree", type=pathlib.Path)
    checking.add_argument("--glibc", required=True)
    checking.add_argument("--glibcxx", required=True)
    given = parser.parse_args()
    if given.command == "bring":
        bring(given.tree.resolve(), given.directory.resolve())
        return 0
    return check(given.tree.resolve(), {"GLIBC": given.glibc, "GLIBCXX": given.glibcxx})


if __name__ == "__main__":
    sys.exit(main())
