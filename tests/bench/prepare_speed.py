#!/usr/bin/env python3
"""`atoll data prepare` from beginning to end, beside decompression alone.

    pip install pyarrow zstandard
    python3 prepare_speed.py --atoll build/release/bin/atoll --text TEXT [--tokenizer FILE] [--megabytes 200]

Makes documents of 4 KB out of the text (repeated to that size, each document with its number, so that none is a
duplicate), as .jsonl.zst and as Parquet (zstd); prepares each with one thread and with all, in bytes and with the
tokenizer; and prints MB of text a second, and how long reading and decompressing the same file takes with one thread.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pyarrow
import pyarrow.parquet
import zstandard

DOCUMENT_BYTES = 4096


def documents(text, megabytes):
    made, at, number = 0, 0, 0
    while made < megabytes * 1e6:
        piece = text[at : at + DOCUMENT_BYTES]
        at = at + DOCUMENT_BYTES if at + 2 * DOCUMENT_BYTES < len(text) else 0
        number += 1
        yield f"{number}\n{piece}"
        made += len(piece.encode())


def timed(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def decompress_lines(path):
    reader = zstandard.ZstdDecompressor().stream_reader(open(path, "rb"))
    while reader.read(1 << 20):
        pass


def read_parquet(path):
    for _ in pyarrow.parquet.ParquetFile(path).iter_batches(256, columns=["text"], use_threads=False):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atoll", required=True)
    parser.add_argument("--text", required=True, type=pathlib.Path)
    parser.add_argument("--tokenizer")
    parser.add_argument("--megabytes", type=int, default=200)
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        texts = list(documents(arguments.text.read_text(errors="replace"), arguments.megabytes))
        size = sum(len(text.encode()) for text in texts)
        with zstandard.ZstdCompressor(level=3).stream_writer(open(place / "text.jsonl.zst", "wb")) as file:
            for text in texts:
                file.write(json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n")
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), place / "text.parquet", compression="zstd",
                                    row_group_size=10_000)
        print(f"{size / 1e6:.0f} MB of text in {len(texts)} documents")
        for file, alone in ((place / "text.jsonl.zst", decompress_lines), (place / "text.parquet", read_parquet)):
            decompression = timed(lambda: alone(file))
            print(f"{file.name}: {file.stat().st_size / 1e6:.0f} MB; reading alone {size / decompression / 1e6:.0f} MB/s")
            for tokenizer in filter(None, ("bytes", arguments.tokenizer)):
                for threads in (1, os.cpu_count()):
                    output = place / "data"
                    command = [arguments.atoll, "data", "prepare", file, "--output", output, "--tokenizer", tokenizer,
                               "--threads", str(threads)]
                    seconds = timed(lambda: subprocess.run(command, check=True, capture_output=True))
                    shutil.rmtree(output)
                    print(f"  {tokenizer}, {threads} threads: {size / seconds / 1e6:.0f} MB/s, "
                          f"{decompression / seconds:.2f} of the time is what reading alone takes")


if __name__ == "__main__":
    main()
