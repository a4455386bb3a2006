#!/usr/bin/env python3
"""The documents' commands: every `atoll` line has commands and options that there are, and what organisers and providers are told to do is
done, in the order in which they would, by one organiser and one provider on this machine. usage: docs_test.py ATOLL SOURCE_DIR

A block of commands is marked above it: <!-- run: WHO NUMBER[, goes on][, after WHO NUMBER] --> or <!-- not run: WHY -->. "goes on": until the
end, while the others run. Names of hosts and ports, and sizes of the run, are another here: _SUBSTITUTES."""

import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ATOLL, SOURCE = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
DOCUMENTS = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
RUN = [SOURCE / "docs" / name for name in ("organisers.md", "providers.md", "operations.md", "owners-rules.md")]
_LIMIT = 240  # seconds, for anything; a hang, not a slow machine
_MARK = re.compile(r"<!-- (run|not run): (.*?) -->")


def blocks(path):
    """(mark, what it says, lines) of each block of commands: one without a language."""
    lines = path.read_text(encoding="utf-8").split("\n")
    at = 0
    while at < len(lines):
        if not lines[at].startswith("```"):
            at += 1
            continue
        end = at + 1
        while not lines[end].startswith("```"):
            end += 1
        if lines[at] == "```":
            mark = _MARK.fullmatch(lines[at - 1].strip())
            yield (mark[1] if mark else None, mark[2] if mark else "", lines[at + 1:end])
        at = end + 1


def commands(lines):
    """The `atoll` calls among shell lines, as words."""
    for line in "\n".join(lines).replace("\\\n", " ").split("\n"):
        if line.startswith("atoll "):
            words = shlex.split(line, comments=True)
            for stop in ("<", ">", "|", "&"):
                words = words[:words.index(stop)] if stop in words else words
            yield line, words


class Block:
    def __init__(self, path, text, lines):
        words = [part.strip() for part in text.split(",")]
        self.who, number = words[0].split()
        self.number, self.lines, self.path = int(number), lines, path
        self.goes_on = "goes on" in words
        self.after = [tuple(word.split()[1:]) for word in words if word.startswith("after ")]

    def key(self):
        return (self.who, str(self.number))


def ordered(found):
    """Each one after those of lower numbers of the same person, and after those that it names."""
    done, order, left = set(), [], sorted(found, key=lambda block: (block.who, block.number))
    while left:
        ready = next((block for block in left if all(name in done for name in block.after) and
                      not any(other.who == block.who and other.number < block.number for other in left)), None)
        if ready is None:
            raise AssertionError(f"blocks wait for each other: {[block.key() for block in left]}")
        left.remove(ready)
        done.add(ready.key())
        order.append(ready)
    return order


class DocsTest(unittest.TestCase):
    def options(self, path):
        said = subprocess.run([ATOLL, *path, "--help"], capture_output=True, text=True)
        return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", said.stdout)) if said.returncode == 0 else None

    def test_every_command_has_options_that_there_are(self):
        known = {}
        seen = 0
        for document in DOCUMENTS:
            for _, _, lines in blocks(document):
                for line, words in commands(lines):
                    path, options = [], None
                    while len(path) < 3:
                        key = tuple(words[1:len(path) + 2])
                        if len(key) == len(path) or key[-1].startswith("-") or not re.fullmatch(r"[a-z-]+", key[-1]):
                            break
                        known.setdefault(key, self.options(key))
                        if known[key] is None:
                            break
                        path, options = list(key), known[key]
                    if words[1].startswith("--host"):
                        continue
                    self.assertIsNotNone(options, f"{document.name}: no such command: {line}")
                    for word in words[1:]:
                        name = word.split("=")[0]
                        if name.startswith("-") and len(name) > 1 and not name.lstrip("-").isdigit():
                            self.assertIn(name, options, f"{document.name}: {line}")
                    seen += 1
        self.assertGreater(seen, 80)

    def test_blocks_that_people_follow_are_run(self):
        for document in RUN:
            for mark, _, lines in blocks(document):
                self.assertIsNotNone(mark, f"{document.name}: neither run nor left out with a reason: {lines}")

    def test_links_lead_to_files(self):
        for document in [*DOCUMENTS, SOURCE / "SECURITY.md", SOURCE / "CHANGELOG.md"]:
            for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document.name}: {target}")


class Session:
    """Organiser and provider, with a home of their own and what the documents suppose: a corpus, an open port."""

    def __init__(self, directory):
        self.work = directory / "work"
        (self.work / "corpus").mkdir(parents=True)
        (directory / "home").mkdir()
        text = "".join(f"Island {i} of the ring hears what island {i * 7 % 101} has learned.\n" for i in range(6000))
        (self.work / "corpus" / "ring.txt").write_text(text)
        keep = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        # On the processor, whatever the machine has.
        self.environment = {**keep, "HOME": str(directory / "home"), "CUDA_VISIBLE_DEVICES": "",
                            "PATH": f"{pathlib.Path(ATOLL).parent}:{os.environ['PATH']}"}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.substitutes = [("hub.example.org:47000", f"127.0.0.1:{port}"), ("0.0.0.0:47000", f"127.0.0.1:{port}"),
                            ("0.0.0.0:47001", "127.0.0.1:0"), ("--from-round 800", "--from-round 800000"),
                            ("--islands 2", "--islands 1 --inner-steps 2 --batch 2 --validate-every 0")]
        self.programs = []

    def script(self, block):
        text = "\n".join(block.lines)
        for old, new in self.substitutes:
            text = text.replace(old, new)
        return text

    def run(self, script):
        return subprocess.run(["bash", "-ec", script], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_LIMIT)

    def start(self, script):
        log = open(self.work / f"program-{len(self.programs)}.log", "w+")
        self.programs.append((subprocess.Popen(["bash", "-ec", "exec " + script.strip()], cwd=self.work, env=self.environment,
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT), log))

    def end(self):
        said = ""
        for program, log in reversed(self.programs):
            program.send_signal(signal.SIGINT)
            try:
                program.wait(_LIMIT)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
            log.seek(0)
            said += log.read()[-4000:]
            log.close()
        return said

    def wait(self, script):
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            if self.run(script).returncode == 0:
                return True
            time.sleep(0.3)
        return False


_STARTED = {"organiser": "atoll hub status", "provider": "atoll hub status --json | grep -qE '\"outer_step\":[1-9]'"}
# The trainer that a pause ended takes a moment to have its model again.
_AWAITED = {("provider", "6"): "atoll status --json | grep -qE '\"state\": ?\"(waiting|training|syncing)\"'"}


class SessionTest(unittest.TestCase):
    def test_what_organisers_and_providers_are_told_to_do_works(self):
        found = [Block(path, text, lines) for path in RUN for mark, text, lines in blocks(path) if mark == "run"]
        self.assertGreater(len(found), 12)
        with tempfile.TemporaryDirectory() as directory:
            session = Session(pathlib.Path(directory))
            try:
                for block in ordered(found):
                    with self.subTest(block=f"{block.path.name}: {block.key()}"):
                        self.follow(session, block)
            finally:
                said = session.end()
            self.assertIn("contributed: ", said)
            self.assertTrue((session.work / "my-model" / "model.safetensors").exists())

    def follow(self, session, block):
        script = session.script(block)
        if block.goes_on:
            session.start(script)
            self.assertTrue(session.wait(_STARTED[block.who]), block.lines)
            return
        if block.key() in _AWAITED:
            self.assertTrue(session.wait(_AWAITED[block.key()]), block.lines)
        outcome = session.run(script)
        checks = block.lines == ["atoll check --quick"]  # of a machine that nobody chose: rows may fail
        self.assertIn(outcome.returncode, (0, 6) if checks else (0,), outcome.stdout)
        invite = re.search(r"atoll1\.\S+", outcome.stdout)
        if invite:
            file = session.work / "invite.txt"
            file.touch(mode=0o600)
            file.write_text(invite[0] + "\n")


if __name__ == "__main__":
    unittest.main()
