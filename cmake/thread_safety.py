#!/usr/bin/env python3
"""Clang's thread-safety analysis (net/base/mutex.h) of what this build compiles; compiles nothing, links nothing.

  thread_safety.py CLANG BUILD_DIRECTORY SOURCE_DIRECTORY [FILE...]

Without FILEs: every source that names a mutex of ours or a member that one guards, or includes a header that does. A
guarded member is private, so those are the sources that can touch one.
"""

import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from source_commands import source_commands

NAMES = re.compile(r"\b(Mutex|MutexLock|CondVar|SharedMutex|ReaderLock|WriterLock|ATOLL_GUARDED_BY|ATOLL_REQUIRES)\b")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
DIAGNOSTICS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]


def concerns(source: Path, root: Path) -> bool:
    text = source.read_text(encoding="utf-8")
    included = [root / name for name in INCLUDE.findall(text)]
    return any(NAMES.search(t) for t in [text, *(h.read_text(encoding="utf-8") for h in included if h.is_file())])


def clang_arguments(command: str, generated: str) -> list[str]:
    """The compiler's arguments that clang wants, too: where headers are, and what is defined."""
    kept, arguments = [], iter(shlex.split(command))
    for argument in arguments:
        if argument in ("-isystem", "-I", "-D"):
            kept += [argument, next(arguments)]
        elif argument.startswith(("-I", "-D", "-std=", "-isystem", "-mavx", "-mfma", "-mf16c", "-fPI")):
            kept.append(argument)
    return [*kept, f"-I{generated}"]


def main() -> int:
    clang, build, root = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]).resolve()
    chosen = {(root / name).resolve() for name in sys.argv[4:]}
    work = {}
    for entry in source_commands(build):
        source = Path(entry["file"]).resolve()
        if source.suffix != ".cpp" or not source.is_relative_to(root) or source.is_relative_to(build.resolve()):
            continue
        if source in chosen if chosen else concerns(source, root):
            work.setdefault(source, entry)
    if not work or chosen - work.keys():
        print("thread-safety: not in this build:", *sorted(map(str, chosen - work.keys())), file=sys.stderr)
        return 1

    def look(source: Path) -> str:
        entry = work[source]
        done = subprocess.run(
            [clang, *clang_arguments(entry["command"], generated), *DIAGNOSTICS, str(source)],
            capture_output=True, text=True, cwd=entry["directory"], check=False)
        return "" if done.returncode == 0 else f"{source.relative_to(root)}:\n{done.stdout}{done.stderr}"

    with (
        tempfile.TemporaryDirectory() as generated,
        concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        # Where a test was not built yet its .moc is not there. What it says of signals is nothing to this analysis.
        for source in work:
            Path(generated, source.stem + ".moc").touch()
        complaints = [text for text in pool.map(look, sorted(work)) if text]
    print("\n".join(complaints), end="")
    print(f"thread-safety: {len(work)} files, {len(complaints)} with complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
