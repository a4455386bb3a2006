"""What is done in one place, or in few: who makes processes, who locks, who renames and writes files.

source_rules.py applies it, and source_rules_test.py tries each on the line that breaks it.
"""
import re
from typing import NamedTuple

from cpp_scopes import plain_code


class Place(NamedTuple):
    what: str
    pattern: str
    breaks_it: str  # a line that it must find
    allowed: dict[str, str]  # file or directory: why
    in_comments: bool = False


LOG = "a log's rotation: what a power cut undoes of it is found under the other name"

PLACES = [
    Place(
        "processes are made in net/base/child_process",
        r"\b(v?fork|execv[pe]{0,2}|execl[pe]?|posix_spawnp?|waitpid|popen|daemon)\s*\(|std::system\(|PR_SET_PDEATHSIG",
        "  const pid_t pid = ::fork();",
        {
            "net/base/child_process.cpp": "the one place",
            "tests/net/base/child_process_test.cpp": "forks to be the parent that dies",
            "tests/net/base/new_file_test.cpp": "forks to be the writer that is killed",
            "tests/net/control/control_socket_test.cpp": "forks to be the server that is killed",
            "tests/process/program.cpp": "ties a QProcess of a test to it",
            "tests/process/tour_run.cpp": "ties a QProcess of a test to it",
        },
    ),
    Place(
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
    Place(
        "mutexes are net/base/mutex.h's, which clang checks",
        r"std::(recursive_|shared_|timed_)*mutex\b|std::condition_variable|std::(lock_guard|unique_lock|scoped_lock|"
        r"shared_lock)\b|#include <(shared_)?mutex>|#include <condition_variable>|\bQ(Recursive)?Mutex\b|QReadWriteLock",
        "  mutable std::mutex mutex_;",
        {"net/base/mutex.h": "the one place"},
    ),
    Place(
        "what a mutex guards is said by ATOLL_GUARDED_BY",
        r"uarded by \w",
        "  int count_;  // guarded by mutex_",
        {},
        in_comments=True,
    ),
    Place(
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
    Place(
        "files come whole: NewFile or write_file_atomically, not a file that is opened to be written",
        r"\bstd::o?fstream\b|\bO_CREAT\b|\bcreat\s*\(|\bfopen\s*\(|QIODevice::(WriteOnly|ReadWrite|Append|Truncate)",
        '  std::ofstream(path) << "half of it";',
        {
            "net/base/new_file.cpp": "the one place",
            "net/base/own_output.cpp": "a log",
            "net/base/child_process.cpp": "a log",
            "net/base/sqlite.cpp": "a database, whose library flushes its directory",
            "net/data/append_file.cpp": "within a directory that is renamed once it is whole",
            "net/data/dataset_fetch.cpp": "what has come so far of a file; renamed once it is whole",
            "net/disk/commit_log.cpp": "a log of records, flushed line by line",
            "net/disk/snapshot_writer.cpp": "chunks of a directory that is renamed once it is whole, and their journal",
            "app/agent/files/rotating_log.cpp": "a log",
            "app/agent/trainer_process.cpp": "a log",
            "app/cli/bench/bench_figures.cpp": "a file of /proc",
            "app/core/child_leash.cpp": "a log",
            "app/core/recorder.cpp": "a recording, good up to where it was cut",
            "tests": "makes files of all kinds",
        },
    ),
]


def _is_allowed(path, place):
    return any(path == allowed or path.startswith(allowed + "/") for allowed in place.allowed)


def _lines(text, place):
    """The lines on which it is done. Of code, with its #includes, but where comments are meant."""
    if not re.search(place.pattern, text):
        return []
    code = text if place.in_comments else plain_code(text, keep_directives=True)
    return [code.count("\n", 0, found.start()) + 1 for found in re.finditer(place.pattern, code)]


def it_is_done_in_its_place(files, places=PLACES):
    for place in places:
        for path, text in files.items():
            if not _is_allowed(path, place):
                yield from (f"{path}:{line}: {place.what}" for line in _lines(text, place))


def nobody_is_allowed_what_he_does_not_do(files, places=PLACES):
    for place in places:
        for allowed in place.allowed:
            if not any(_is_allowed(path, Place("", "", "", {allowed: ""})) and _lines(text, place)
                       for path, text in files.items()):
                yield f"{allowed}: may do this and does not: {place.what}"
