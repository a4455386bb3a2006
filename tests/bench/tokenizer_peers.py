#!/usr/bin/env python3
"""Atoll's tokenizer beside tiktoken and HuggingFace's tokenizers: the same tokens, and how fast.

  pip install tiktoken tokenizers numpy
  tokenizer_peers.py compare --atoll build/release/bin/atoll [--tokenizer FILE ...] [--megabytes 50] [TEXTFILE ...]
  tokenizer_peers.py speed --bench build/release/bin/tokenizer_bench --tokenizer FILE TEXTFILE ...

compare: the tokens of `atoll tokenize` against those of the program that the file was made for: tiktoken for ranks (Llama 3's
tokenizer.model, cl100k_base, o200k_base, r50k_base), tokenizers for a tokenizer.json. Without --tokenizer those of
tests/golden/tokenizer, and of its families (make_tokenizer_families.py) three. Texts: those given, Python's own sources, and made ones: every code point, words of thirty blocks of
Unicode, marks, emoji, numbers, runs of white space, contractions, a megabyte without a space; and bytes that are no UTF-8, of which
the others define nothing, must come back from --decode. Exit status 1 where something differs; 3 where a package is missing.

speed: one thread each, in the same run, in documents of 100 KB, after one pass to warm up; then two threads of Atoll's.
"""
import argparse
import base64
import json
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

try:
    import numpy
    import tiktoken
    import tokenizers
except ImportError as missing:
    print(f"{missing}: pip install tiktoken tokenizers numpy", file=sys.stderr)
    sys.exit(3)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
from make_tokenizers import CL100K, GPT2, LLAMA3, O200K, QWEN2, merge_patch  # noqa: E402

ENCODINGS = {50256: GPT2, 100256: CL100K, 128000: LLAMA3, 151643: QWEN2, 199998: O200K}  # by how many ranks
GOLDEN_PATTERN = "o200k_base"  # of small.tiktoken
GOLDEN_FAMILIES = ("SmolLM", "DeepSeek V3", "Llama 2")  # the begins of their names
BLOCKS = [(0x400, 0x530), (0x370, 0x400), (0x530, 0x590), (0x590, 0x600), (0x600, 0x700), (0x900, 0x980), (0x980, 0xA00),
          (0xB80, 0xC00), (0xE00, 0xE80), (0xE80, 0xF00), (0xF00, 0x1000), (0x1000, 0x10A0), (0x10A0, 0x1100), (0x1100, 0x1200),
          (0x1200, 0x1380), (0x13A0, 0x1400), (0x1780, 0x1800), (0x1E00, 0x1F00), (0x3040, 0x3100), (0x4E00, 0x9FFF),
          (0xAC00, 0xD7A4), (0x1F300, 0x1F650), (0x1D400, 0x1D800), (0x10400, 0x10450), (0x2000, 0x2070), (0x80, 0x250),
          (0x300, 0x370), (0x1E900, 0x1E960)]
PARTS = ["'s", "'S", "'\u017f", "'ll", "'LL", "'re", "'vE", "'d", "'", "''", " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ",
         "a", "B", "ab", "AB", "Ab", "aB", "\u00e9", "\u00c9", "\u00df", "\u01c5", "\u02b0", "\u00aa", "\u4e2d", "\u65e5", "\u0301",
         "\u0300\u0301", "1", "12", "1234", "\u0663", "\u2167", "\u00b2", "!", "...", "/", "//", "-", "_", "<|endoftext|>", "\U0001f600",
         "\U0001f44d\U0001f3fd", "\u200d", "\u00a0", "\u2028", "\u0085", "\u1680", "\u3000", "\0", "\x1f", "\ufeff", "\ufb01", "\u0130",
         "\ud55c", "\u1112", "\u1161", "\u11ab"]


def joined(choose, size):
    parts, length = [], 0
    while length < size:
        parts.append(choose())
        length += len(parts[-1])
    return "".join(parts)


def words_of_scripts(chance, size):
    def word():
        low, high = chance.choice(BLOCKS)
        letters = "".join(chr(chance.randrange(low, high)) for _ in range(chance.randint(1, 9)))
        return letters + chance.choice([" ", " ", " ", "  ", "\n", "", ". ", ",", "\u0301", "1234", "\u3000"])
    return joined(word, size)


def made_texts(megabytes):
    chance, share = random.Random(7), int(megabytes * 1e6 / 6)
    points = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return {
        "code points": "".join(map(chr, points)),
        "code points apart": "".join(chance.choice("a A1 .\n") + chr(code) + chance.choice("a A1 .\n'") for code in points),
        "scripts": words_of_scripts(chance, share // 2),
        "parts": joined(lambda: chance.choice(PARTS), share),
        "white space": joined(lambda: chance.choice([" ", "\n", "\t", "\r", " " * 50, "\u00a0"]) * chance.randint(1, 30)
                              + chance.choice(["", "x", "1", "!", "\u00e9"]), share // 4),
        "numbers": joined(lambda: f"{chance.getrandbits(chance.randint(1, 80))} ", share // 4),
        "no space": joined(lambda: chance.choice("abcdefghijklmnopqrstuvwxyz"), 1_000_000),
        "one letter": "a" * 300_000,
    }


def python_sources(size):
    return joined(iter(path.read_text(encoding="utf-8", errors="replace")
                       for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))).__next__, size)


def tiktoken_of(file, pattern):
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file.read_bytes().splitlines() if line)}
    regex = {"o200k_base": O200K}[pattern] if pattern else ENCODINGS[len(ranks)]
    return tiktoken.Encoding(file.name, pat_str=regex, mergeable_ranks=ranks, special_tokens={})


def peer_of(file, pattern=None):
    """(its name, text -> ids)"""
    if file.suffix != ".json":
        encoding = tiktoken_of(file, pattern)
        return "tiktoken", encoding.encode_ordinary
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.encode_special_tokens = True
    return "tokenizers", lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def atoll_ids(atoll, tokenizer, text, directory):
    file = directory / "text"
    file.write_bytes(text)
    return subprocess.run([atoll, "tokenize", *tokenizer, str(file)], check=True, capture_output=True).stdout


def compare_one(atoll, file, pattern, texts, directory):
    name, encode = peer_of(file, pattern)
    ours = ["--tokenizer", str(file), *(["--pattern", pattern] if pattern else [])]
    different = 0
    for title, text in texts.items():
        expected = numpy.array(encode(text), "int64")
        found = numpy.array(atoll_ids(atoll, ours, text.encode(), directory).split(), "int64")
        same = len(expected) == len(found) and bool((expected == found).all())
        different += not same
        print(f"{file.name}: {title}, {len(text.encode()) / 1e6:.2f} MB, {len(expected)} tokens of {name}: "
              f"{'the same' if same else 'DIFFERENT'}", flush=True)
        if not same:
            least = min(len(expected), len(found))
            at = next((i for i in range(least) if expected[i] != found[i]), least)
            print(f"  from token {at} on: {expected[at:at + 8]}, not {found[at:at + 8]}")
    broken = random.Random(3).randbytes(1_000_000)
    (directory / "ids").write_bytes(atoll_ids(atoll, ours, broken, directory))
    back = subprocess.run([atoll, "tokenize", *ours, "--decode", str(directory / "ids")], check=True, capture_output=True).stdout
    print(f"{file.name}: random bytes {'come back' if back == broken else 'DO NOT COME BACK'}")
    return different + (back != broken)


def golden_families(golden, directory):
    """Their files, written into the directory."""
    for family in json.loads((golden / "families.json").read_text(encoding="ascii"))["families"]:
        name = next((name for name in GOLDEN_FAMILIES if family["name"].startswith(name + ",")), family["name"])
        if name not in GOLDEN_FAMILIES:
            continue
        whole = json.loads((golden / family["base"]).read_text(encoding="utf-8"))
        merge_patch(whole, family["patch"])
        file = directory / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(whole), encoding="utf-8")
            yield file, None


def compare(arguments):
    texts = made_texts(arguments.megabytes)
    texts["Python"] = python_sources(int(arguments.megabytes * 1e6 / 4))
    for file in arguments.texts:
        texts[file.name] = file.read_text(encoding="utf-8", errors="replace")
    golden = ROOT / "tests" / "golden" / "tokenizer"
    chosen = [(file, None) for file in arguments.tokenizer] or [(golden / "tokenizer.json", None), (golden / "small.tiktoken", GOLDEN_PATTERN)]
    with tempfile.TemporaryDirectory() as directory:
        if not arguments.tokenizer:
            chosen += golden_families(golden, Path(directory))
        different = sum(compare_one(arguments.atoll, file, pattern, texts, Path(directory)) for file, pattern in chosen)
    print(f"{sum(len(text.encode()) for text in texts.values()) / 1e6:.1f} MB of text, {different} differences")
    return different != 0


def documents_of(text):
    while text:
        end = len(text) if len(text) <= 100_000 else (text.find("\n", 100_000) + 1 or len(text))
        yield text[:end]
        text = text[end:]


def megabytes_per_second(encode, documents, size):
    best = 1e9
    for _ in range(2):
        began = time.perf_counter()
        for document in documents:
            encode(document)
        best = min(best, time.perf_counter() - began)
    return size / best / 1e6


def speed(arguments):
    print("MB/s, one thread each: text, Atoll, its peer, ratio; two threads of Atoll's, ratio to one")
    for file in arguments.tokenizer:
        name, encode = peer_of(file)
        for path in arguments.texts:
            text = path.read_text(encoding="utf-8", errors="replace")
            with tempfile.TemporaryDirectory() as directory:
                clean = Path(directory) / "text"
                clean.write_text(text, encoding="utf-8")
                one, two = (json.loads(subprocess.run([arguments.bench, str(file), str(clean), str(threads)], check=True,
                                                      capture_output=True, text=True).stdout)["megabytes_per_second"] for threads in (1, 2))
            part = text[:arguments.peer_megabytes * 1_000_000]
            peer = megabytes_per_second(encode, list(documents_of(part)), len(part.encode()))
            print(f"{file.name} {path.name}: {one:.1f}, {name} {peer:.1f}, {one / peer:.1f} x; {two:.1f}, {two / one:.2f} x", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("compare")
    one.add_argument("--atoll", default=str(ROOT / "build/release/bin/atoll"))
    one.add_argument("--megabytes", type=float, default=50)
    one.set_defaults(run=compare)
    other = commands.add_parser("speed")
    other.add_argument("--bench", default=str(ROOT / "build/release/bin/tokenizer_bench"))
    other.add_argument("--peer-megabytes", type=int, default=8, help="of each text that the peer is given")
    other.set_defaults(run=speed)
    for command in (one, other):
        command.add_argument("--tokenizer", type=Path, action="append", default=[])
        command.add_argument("texts", type=Path, nargs="*")
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
