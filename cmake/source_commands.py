#!/usr/bin/env python3
"""Each source's own command, where a build compiles several sources as one (ATOLL_UNITY).

  source_commands.py BUILD_DIRECTORY OUTPUT_DIRECTORY     writes OUTPUT_DIRECTORY/compile_commands.json
"""

import json
import re
import sys
from pathlib import Path


def source_commands(build: Path) -> list[dict]:
    """The entries of the build's compile_commands.json, those of joint sources taken apart; of no precompiled header."""
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        file = entry["file"]
        parts = [file]
        if "/Unity/unity_" in file:
            parts = re.findall(r'^#include "([^"]+)"', Path(file).read_text(encoding="utf-8"), re.MULTILINE)
        command = re.sub(r" -include \S*/cmake_pch\.hxx", "", entry["command"])
        entries += [{**entry, "file": part, "command": command.replace(file, part)} for part in parts]
    return entries


def main() -> None:
    build, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    (output / "compile_commands.json").write_text(json.dumps(source_commands(build), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
