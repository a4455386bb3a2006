#!/usr/bin/env python3
"""Do two builds compute the same? Records what a fixed run commits: its rounds' digests and tree hashes.

  recorded_rounds.py record BIN_DIRECTORY FILE [--text TEXT] [--runs N] [--rounds N]
  recorded_rounds.py compare FILE FILE

`record` runs `atoll demo` (three islands of one thread each, the preset's seed) and reads from its hub's database, for
each round: the digest of the committed average, the hash of the state that it made, and in which order the ring went
through the islands (by the data that they trained on), for sums are rounded in that order, and measured links decide it.
Append as many runs as it takes: `compare` compares rounds until which two runs had the same orders, and fails where any
of them differ, or where no ten rounds can be compared.
"""
import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path


def rounds_of(database):
    """The committed rounds, in order: digest, hash of the state after it, and the ring's order."""
    store = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    hashes = dict(store.execute("SELECT outer_step, hash FROM state_hash"))
    rounds = []
    for number, text in store.execute("SELECT round, message FROM round_commit ORDER BY round"):
        commit = json.loads(text)
        leases = [island for (island,) in store.execute(
            "SELECT island FROM lease WHERE round = ? ORDER BY first", (number,))]
        order = [leases.index(member["id"]) for member in commit["members"]]
        rounds.append({"order": order, "digest": commit["digest"], "hash": hashes.get(number + 1)})
    return rounds


def record(arguments):
    runs = json.loads(arguments.file.read_text()) if arguments.file.exists() else []
    for _ in range(arguments.runs):
        directory = Path(tempfile.mkdtemp(prefix="recorded-rounds-"))
        try:
            command = [arguments.programs / "atoll", "demo", "--rounds", str(arguments.rounds), "--dir", directory / "run"]
            if arguments.text:
                command += ["--text", arguments.text]
            done = subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": str(directory / "cache")}, check=False,
                                  capture_output=True, text=True)
            database = directory / "run/hub/hub.sqlite"
            if done.returncode != 0 or not database.exists():
                sys.exit(f"the demo failed ({done.returncode}):\n{done.stdout}{done.stderr}")
            runs.append(rounds_of(database)[:arguments.rounds])
        finally:
            shutil.rmtree(directory)
        arguments.file.write_text(json.dumps(runs, indent=1) + "\n")
        print(f"run {len(runs)}:", *("".join(map(str, r["order"])) for r in runs[-1]))


def same_orders(a, b):
    """How many rounds from the first on went in the same orders."""
    count = 0
    while count < min(len(a), len(b)) and a[count]["order"] == b[count]["order"]:
        count += 1
    return count


def compare(arguments):
    before, after = (json.loads(file.read_text()) for file in arguments.files)
    most = 0
    for i, a in enumerate(before):
        for j, b in enumerate(after):
            count = same_orders(a, b)
            for number in range(count):
                if a[number] != b[number]:
                    sys.exit(f"run {i + 1} and run {j + 1} went in the same orders and differ at round {number}:\n"
                             f"{a[number]}\n{b[number]}")
            most = max(most, count)
            if count:
                print(f"run {i + 1} and run {j + 1}: {count} rounds, equal")
    if most < 10:
        sys.exit(f"at most {most} rounds went in the same orders: record more runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record")
    recording.add_argument("programs", type=Path)
    recording.add_argument("file", type=Path)
    recording.add_argument("--text", type=Path)
    recording.add_argument("--runs", type=int, default=1)
    recording.add_argument("--rounds", type=int, default=10)
    recording.set_defaults(run=record)
    comparing = commands.add_parser("compare")
    comparing.add_argument("files", type=Path, nargs=2)
    comparing.set_defaults(run=compare)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
