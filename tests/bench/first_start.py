#!/usr/bin/env python3
"""How long it is from nothing to the demo's first committed round, by part: in an empty root of Debian 12, with nothing cached.

  first_start.py [--commit REVISION...] [--directory DIR] [--file FILE...] [--apt-mirror URL] [--log FILE]

As root. A root of debootstrap's (minbase, git and certificates) is made once in DIR and copied for each revision, in which then runs, as
README says, `git clone` and `installer/demo.sh --rounds 1`. `--file`: of this machine, what reaching apt and PyPI takes, such as
certificates and pip.conf. `--log`: takes what the demo says, each line with its second. Nothing else may run meanwhile. Prints seconds by part, and what the compilers
took of the processors.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

# What demo.sh says when a part begins. Between the last two are the texts' preparation, the islands' start and the round.
PARTS = [(r"== 1/3 packages", "packages"), (r"== 2/3", "libtorch, and what is built beside"), (r"== 3/3 build", "build"),
         (r"== demo", "demo"), (r"round +0 ", None)]


def run(*command, **more):
    subprocess.run([str(word) for word in command], check=True, **more)


def make_base(base, mirror):
    if (base / "usr/bin/git").exists():
        return
    run("debootstrap", "--variant=minbase", "--include=ca-certificates,git", "bookworm", base, mirror)


class Mounted:
    def __init__(self, root):
        self.root = root

    def __enter__(self):
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")
        run("mount", "--make-rslave", self.root / "dev")
        return self

    def __exit__(self, *_):
        for place in ("proc", "dev"):
            subprocess.run(["umount", "-R", "-l", str(self.root / place)], check=False)


def measure(root, source, revision, log):
    """[(part, seconds)] and the processors' seconds."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "CCACHE_DISABLE": "1"}
    parts, part, since = [], "clone", time.monotonic()
    shutil.copytree(source, root / "srv/atoll.git")  # a server's part: not measured
    since = time.monotonic()
    run("chroot", root, "sh", "-c", "git config --global --add safe.directory '*' && git clone -q /srv/atoll.git /root/atoll && "
        f"git -C /root/atoll checkout -q {revision}", env=environment)
    before, began = os.times(), time.monotonic()
    demo = subprocess.Popen(["chroot", str(root), "/root/atoll/installer/demo.sh", "--rounds", "1"], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    waiting, said = list(PARTS), []
    for line in demo.stdout:
        said.append(line)
        if log:
            print(f"{time.monotonic() - began:6.1f}  {line}", end="", file=log, flush=True)
        if waiting and re.match(waiting[0][0], line):
            now = time.monotonic()
            parts.append((part, now - since))
            part, since = waiting.pop(0)[1], now
    if demo.wait() != 0 or waiting:
        sys.exit("first_start.py: the demo did not come to its first round:\n" + "".join(said[-20:]))
    after = os.times()
    return parts, after.children_user + after.children_system - before.children_user - before.children_system


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--commit", nargs="+", default=["HEAD"])
    arguments.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("/var/tmp/atoll-first-start"))
    arguments.add_argument("--file", nargs="*", type=pathlib.Path, default=[])
    arguments.add_argument("--apt-mirror", default="http://deb.debian.org/debian")
    arguments.add_argument("--log", type=argparse.FileType("w"))
    given = arguments.parse_args()
    source = subprocess.run(["git", "-C", str(pathlib.Path(__file__).parent), "rev-parse", "--path-format=absolute",
                             "--git-common-dir"], check=True, capture_output=True, text=True).stdout.strip()
    given.directory.mkdir(parents=True, exist_ok=True)
    base = given.directory / "base"
    make_base(base, given.apt_mirror)
    for place in (pathlib.Path("/etc/resolv.conf"), *given.file):
        shutil.copy(place, base / place.relative_to("/"))
    for revision in given.commit:
        commit = subprocess.run(["git", "--git-dir", source, "rev-parse", revision], check=True, capture_output=True,
                                text=True).stdout.strip()
        root = given.directory / "root"
        shutil.rmtree(root, ignore_errors=True)
        run("cp", "-a", base, root)
        with Mounted(root):
            parts, processors = measure(root, source, commit, given.log)
        print(f"{commit[:12]}: {sum(seconds for _, seconds in parts):.0f} s, of the processors {processors:.0f} s (load "
              f"{os.getloadavg()[2]:.1f})")
        for part, seconds in parts:
            print(f"  {seconds:6.0f} s  {part}")
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
