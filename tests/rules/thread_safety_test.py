#!/usr/bin/env python3
"""cmake/thread_safety.py finds a member that is touched without its mutex. Usage: thread_safety_test.py ROOT CLANG"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, CLANG = Path(sys.argv[1]).resolve(), sys.argv[2]

COUNTER = """#include "net/base/mutex.h"
class Counter {
 public:
%s
 private:
  void increment() ATOLL_REQUIRES(mutex_) { ++count_; }
  atl::Mutex mutex_;
  atl::CondVar changed_;
  int count_ ATOLL_GUARDED_BY(mutex_) = 0;
};
"""
FIRST_LINE = 4  # of what stands for %s
HOLDS_IT = """void a() { atl::MutexLock lock(mutex_); ++count_; }
void b() { atl::MutexLock lock(mutex_); increment(); }
void c() { atl::MutexLock lock(mutex_); changed_.wait(lock, [this]() ATOLL_REQUIRES(mutex_) { return count_ > 0; }); }"""
DOES_NOT = """void a() { ++count_; }
void b() { increment(); }
void c() { { atl::MutexLock lock(mutex_); } ++count_; }
void d() { atl::MutexLock lock(mutex_); lock.unlock(); ++count_; }"""


class ThreadSafety(unittest.TestCase):
    def analysis_of(self, functions):
        """Its exit status, what it says of a Counter with them, and of which of their lines."""
        with tempfile.TemporaryDirectory() as directory:
            source, build = Path(directory, "counter.cpp"), Path(directory, "build")
            build.mkdir()
            source.write_text(COUNTER % functions, encoding="utf-8")
            command = {"file": str(source), "directory": directory, "command": f"c++ -std=c++20 -I{ROOT} -c {source}"}
            (build / "compile_commands.json").write_text(json.dumps([command]), encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", ROOT / "cmake/thread_safety.py", CLANG, build, directory],
                                  capture_output=True, text=True, check=False)
            said = done.stdout + done.stderr
            lines = re.findall(r"counter\.cpp:(\d+):\d+: error: .* requires holding mutex 'mutex_'", said)
            return done.returncode, said, [int(line) - FIRST_LINE for line in lines]

    def test_who_holds_the_mutex_may_touch_what_it_guards(self):
        status, said, _ = self.analysis_of(HOLDS_IT)
        self.assertEqual(status, 0, said)

    def test_who_does_not_hold_it_may_not(self):
        status, said, lines = self.analysis_of(DOES_NOT)
        self.assertEqual((status, lines), (1, [0, 1, 2, 3]), said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
