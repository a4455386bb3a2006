#!/usr/bin/env python3
"""Rules on the sources that no compiler checks: who makes processes, who locks, who renames files.

  system_rules.py SOURCE_DIRECTORY

Each rule is tried on a line that breaks it as well. With clang++, a source that touches what a mutex guards without
holding it is compiled, and must be refused; without clang++ this is left out, which is said.
"""

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple


class Rule(NamedTuple):
    what: str
    pattern: str
    breaks_it: str  # a line that it must find
    allowed: dict[str, str]  # file or directory: why
    in_comments: bool = False


ROOMS = ("app", "kernels", "net", "tests", "trainer")
LOG = "a log's rotation: what a power cut undoes of it is found under the other name"

RULES = [
    Rule(
        "processes are made in net/base/child_process",
        r"\b(v?fork|execv[pe]{0,2}|execl[pe]?|posix_spawnp?|waitpid|popen|daemon)\s*\(|std::system\(|PR_SET_PDEATHSIG",
        "  const pid_t pid = ::fork();",
        {
            "net/base/child_process.cpp": "the one place",
            "tests/net/base/child_process_test.cpp": "forks to be the parent that dies",
            "tests/net/base/new_file_test.cpp": "forks to be the writer that is killed",
            "tests/process/program.cpp": "ties a QProcess of a test to it",
            "tests/process/tour_run.cpp": "ties a QProcess of a test to it",
        },
    ),
    Rule(
        "QProcess is for event loops that must not wait",
        r"#include <(QtCore/)?QProcess>",
        "#include <QProcess>",
        {
            "app/core/child_leash.h": "starts and ends them for the three below",
            "app/core/command_process.cpp": "a command's output, as it comes",
            "app/core/ssh_stream.cpp": "a stream over ssh, as it comes",
            "tests": "tests of Qt programs",
        },
    ),
    Rule(
        "mutexes are net/base/mutex.h's, which clang checks",
        r"std::(recursive_|shared_|timed_)*mutex\b|std::condition_variable|std::(lock_guard|unique_lock|scoped_lock|"
        r"shared_lock)\b|#include <(shared_)?mutex>|#include <condition_variable>|\bQ(Recursive)?Mutex\b|QReadWriteLock",
        "  mutable std::mutex mutex_;",
        {"net/base/mutex.h": "the one place"},
    ),
    Rule(
        "what a mutex guards is said by ATOLL_GUARDED_BY",
        r"uarded by \w",
        "  int count_;  // guarded by mutex_",
        {},
        in_comments=True,
    ),
    Rule(
        "what is renamed is flushed, with its directory: net/base/new_file",
        r"(?<![\w.>])(std::filesystem::|::|std::|fs::)?rename(at2?)?\s*\(|QFile::rename|\.rename\(|->rename\(|QSaveFile",
        "  std::filesystem::rename(from, to, error);",
        {
            "net/base/new_file.cpp": "the one place",
            "net/base/own_output.cpp": LOG,
            "app/agent/files/rotating_log.cpp": LOG,
            "app/agent/trainer_process.cpp": LOG,
            "tests": "moves files about to see what programs make of it",
        },
    ),
    Rule(
        "files come whole: NewFile or write_file_atomically, not a file that is opened to be written",
        r"\bstd::o?fstream\b|\bO_CREAT\b|\bcreat\s*\(|\bfopen\s*\(|QIODevice::(WriteOnly|ReadWrite|Append|Truncate)",
        '  std::ofstream(path) << "half of it";',
        {
            "net/base/new_file.cpp": "the one place",
            "net/base/own_output.cpp": "a log",
            "net/base/child_process.cpp": "a log",
            "net/base/sqlite.cpp": "a database, whose library flushes its directory",
            "net/data/shard_writer.cpp": "within a NewDirectory",
            "net/data/dataset_fetch.cpp": "what has come so far of a file; renamed once it is whole",
            "net/disk/commit_log.cpp": "a log of records, flushed line by line",
            "app/agent/files/rotating_log.cpp": "a log",
            "app/agent/trainer_process.cpp": "a log",
            "app/cli/bench/bench_figures.cpp": "a file of /proc",
            "app/core/child_leash.cpp": "a log",
            "app/core/recorder.cpp": "a recording, good up to where it was cut",
            "tests": "makes files of all kinds",
        },
    ),
]

VIOLATION = """#include "net/base/mutex.h"
class Counter {
 public:
  void add() { %s ++count_; }
 private:
  atl::Mutex mutex_;
  int count_ ATOLL_GUARDED_BY(mutex_) = 0;
};
void use() { Counter().add(); }
"""


def without_comment(line: str) -> str:
    return re.sub(r'(?<!:)//.*|"(\\.|[^"\\])*"', "", line) if not line.startswith("#") else line


def is_allowed(name: str, rule: Rule) -> bool:
    return any(name == allowed or name.startswith(allowed + "/") for allowed in rule.allowed)


def broken_lines(rule: Rule, lines: list[str]) -> list[int]:
    pattern = re.compile(rule.pattern)
    return [
        number
        for number, line in enumerate(lines, 1)
        if pattern.search(line) and (rule.in_comments or pattern.search(without_comment(line)))
    ]


@functools.cache
def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@functools.cache
def sources(root: Path) -> list[Path]:
    return [p for room in ROOMS for p in sorted((root / room).rglob("*")) if p.suffix in (".cpp", ".h", ".cu", ".cuh")]


def check_rule(root: Path, rule: Rule) -> list[str]:
    if not broken_lines(rule, [rule.breaks_it]):
        return [f"the rule '{rule.what}' does not find: {rule.breaks_it}"]
    found = []
    for path in sources(root):
        name = str(path.relative_to(root))
        if is_allowed(name, rule):
            continue
        found += [f"{name}:{n}: {rule.what}" for n in broken_lines(rule, lines_of(path))]
    # What is allowed and does not need it any longer is not allowed.
    for name in rule.allowed:
        path = root / name
        if not path.exists() or (path.is_file() and not broken_lines(rule, lines_of(path))):
            found.append(f"{name}: is allowed to break '{rule.what}', and does not")
    return found


def compiles(clang: str, root: Path, text: str) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "counter.cpp"
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [clang, "-std=c++20", "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety", f"-I{root}", str(source)],
            capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stderr


def check_thread_safety(root: Path) -> list[str]:
    clang = shutil.which("clang++")
    if clang is None:
        print("left out: no clang++ to see that a member is not touched without its mutex")
        return []
    held, said = compiles(clang, root, VIOLATION % "atl::MutexLock lock(mutex_);")
    if not held:
        return [f"clang++ refuses a member that is touched by who holds its mutex:\n{said}"]
    touched, said = compiles(clang, root, VIOLATION % "")
    if touched or "requires holding mutex 'mutex_'" not in said:
        return [f"clang++ does not refuse a member that is touched without its mutex:\n{said}"]
    return []


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    found = [text for rule in RULES for text in check_rule(root, rule)] + check_thread_safety(root)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
