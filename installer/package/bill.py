#!/usr/bin/env python3
"""What a package brings along: a CycloneDX 1.5 document, and the licences' texts. Standard library, dpkg-query.

  bill.py --name atoll --version 0.1.0 --commit HASH --tree DIR --libtorch DIR --arrow DIR --licences DIR --output FILE

Of the libraries in --tree: wheels' by installer/*.txt, Debian's by dpkg; and of headers that programs are compiled with. A library
whose origin is not found is an error. Its time is SOURCE_DATE_EPOCH.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

INSTALLER = pathlib.Path(__file__).resolve().parent.parent
# Compiled into programs, no library of their own.
HEADERS = {
    "atoll": ["libboost1.81-dev", "libcli11-dev", "nlohmann-json3-dev", "libtomlplusplus-dev", "libxxhash-dev"],
    "atoll-gui": ["libboost1.81-dev", "nlohmann-json3-dev"],
}
# Whose library is whose wheel's.
WHEELS = [("libtorch/torch/lib/", "torch"), ("libtorch/nvidia/cu13/lib/libcudart", "nvidia-cuda-runtime"),
          ("libtorch/nvidia/cu13/lib/libcupti", "nvidia-cuda-cupti"), ("lib/libarrow.", "pyarrow"), ("lib/libparquet.", "pyarrow")]
OURS = re.compile(r"bin/atoll(-trainer|-gpu-probe|-gui|-parquet)?$")


def pins():
    """name -> (version, sha256)"""
    found = {}
    for file in ("libtorch.txt", "arrow.txt"):
        for name, version, sha256 in re.findall(r"^([\w.-]+)==([\w.]+) --hash=sha256:([0-9a-f]{64})",
                                                (INSTALLER / file).read_text(), re.MULTILINE):
            found[name] = (version, sha256)
    return found


def libraries(tree):
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path.relative_to(tree).as_posix()


def debian_packages_of(names):
    """Library -> the package that has it where the loader looks; without those that none has."""
    places = {}
    for name in names:
        for directory in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"):
            file = (pathlib.Path(directory) / name).resolve().name
            places.update({f"{directory}/{name}": name, f"{directory}/{file}": name})
    if not places:
        return {}
    answer = subprocess.run(["dpkg-query", "-S", *sorted(places)], capture_output=True, text=True)  # 1: one place is nobody's
    lines = (line.split(": ", 1) for line in answer.stdout.splitlines() if not line.startswith("diversion"))
    return {places[place]: packages.split(":", 1)[0] for packages, place in lines}


def debian_licences(copyright_file):
    names = re.findall(r"^License:[ \t]*(\S.*)$", copyright_file.read_text(errors="replace"), re.MULTILINE)
    return sorted(set(name.strip() for name in names))


def debian_component(package, licences):
    version = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], check=True, capture_output=True, text=True).stdout
    text = pathlib.Path("/usr/share/doc") / package / "copyright"
    shutil.copyfile(text, licences / f"{package}.txt")
    names = debian_licences(text) or [f"see licences/{package}.txt"]
    return {"type": "library", "name": package, "version": version,
            "licenses": [{"license": {"name": name}} for name in names],
            "purl": f"pkg:deb/debian/{package}@{version}?arch=amd64&distro=debian-12"}


def wheel_component(name, version, sha256, given, licences):
    for place in (given.libtorch, *given.arrow.glob("arrow-*")):
        texts = sorted((place / f"{name.replace('-', '_')}-{version}.dist-info" / "licenses").rglob("*"))
        texts = [text for text in texts if text.is_file()]
        if texts:
            break
    else:
        raise SystemExit(f"bill.py: the licence of {name} {version} lies neither in {given.libtorch} nor in {given.arrow}")
    (licences / f"{name}.txt").write_text("\n".join(text.read_text(errors="replace") for text in texts))
    return {"type": "library", "name": name, "version": version,
            "licenses": [{"license": {"name": f"see licences/{name}.txt"}}],
            "purl": f"pkg:pypi/{name}@{version}", "hashes": [{"alg": "SHA-256", "content": sha256}]}


def components(given):
    known, packages = pins(), set(HEADERS[given.name])
    others = [library for library in libraries(given.tree) if not OURS.match(library)]
    of_wheels = {library: name for library in others for start, name in WHEELS if library.startswith(start)}
    names = {library: library.rsplit("/", 1)[-1] for library in others if library not in of_wheels}
    of_debian = debian_packages_of(names.values())
    for library, name in names.items():
        if name not in of_debian:
            raise SystemExit(f"bill.py: whose {library} is, nobody says")
        packages.add(of_debian[name])
    found = [wheel_component(name, *known[name], given, given.licences) for name in sorted(set(of_wheels.values()))]
    return found + [debian_component(name, given.licences) for name in sorted(packages)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", choices=sorted(HEADERS), required=True)
    for name in ("version", "commit"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("tree", "libtorch", "arrow", "licences", "output"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    given = parser.parse_args()
    given.licences.mkdir(parents=True, exist_ok=True)
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    licence = "Apache-2.0" if given.name == "atoll" else "GPL-3.0-or-later"
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": given.name, "name": given.name, "version": given.version,
                          "licenses": [{"license": {"id": licence}}], "properties": [{"name": "commit", "value": given.commit}]}},
        "components": components(given)}
    name = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, name)}"
    given.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
