#!/usr/bin/env python3
"""Makes the golden files of what lies on an island's disk, from the layouts that net/disk/*.h state (of join.json
net/control/home.h, of wish.json app/agent/wish.h), without Atoll's code.

    python3 make.py            # writes them beside this script
    python3 make.py --check    # 1 where one of them differs

Tests read them, and write the same bytes from the same values. Standard library only.
"""

import hashlib
import json
import pathlib
import struct
import sys

CHUNK_BYTES = 16 << 20  # of an outer state, for its tree hash
PIECE_BYTES = 256 << 10  # of an average, for its digest


# ---- values: exact in fp32, each different from its neighbours

def values(count, step, modulus, divisor):
    return [(i * step % modulus - modulus // 2) / divisor for i in range(count)]


def fp32(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


# ---- hashes

def tree_hash(outer_step, state):
    chunks = [hashlib.sha256(state[at:at + CHUNK_BYTES]).digest() for at in range(0, len(state), CHUNK_BYTES)]
    return hashlib.sha256(struct.pack("<IQ", outer_step, len(state)) + b"".join(chunks)).hexdigest()


MASK = (1 << 64) - 1
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
SECRET = bytes.fromhex(  # XXH3_kSecret
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def word(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def mix(data, at, secret_at):
    product = (word(data, at) ^ word(SECRET, secret_at)) * (word(data, at + 8) ^ word(SECRET, secret_at + 8))
    return (product & MASK) ^ (product >> 64)


def avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def xxh3_128(data):
    """XXH3's 128 bits of 129 to 240 bytes without a seed, big-endian; its other lengths are not needed here."""
    assert 129 <= len(data) <= 240
    low, high = len(data) * PRIMES[0] & MASK, 0

    def round_(first, second, secret_at):
        nonlocal low, high
        low = ((low + mix(data, first, secret_at)) & MASK) ^ ((word(data, second) + word(data, second + 8)) & MASK)
        high = ((high + mix(data, second, secret_at + 16)) & MASK) ^ ((word(data, first) + word(data, first + 8)) & MASK)

    for i in range(len(data) // 32):
        if i == 4:
            low, high = avalanche(low), avalanche(high)
        round_(32 * i, 32 * i + 16, 32 * i if i < 4 else 3 + 32 * (i - 4))
    if len(data) // 32 == 4:
        low, high = avalanche(low), avalanche(high)
    round_(len(data) - 16, len(data) - 32, 136 - 17 - 16)
    sum_low = (low + high) & MASK
    sum_high = (low * PRIMES[0] + high * PRIMES[3] + len(data) * PRIMES[1]) & MASK
    return (-avalanche(sum_high) & MASK).to_bytes(8, "big") + avalanche(sum_low).to_bytes(8, "big")


def canonical_digest(data):
    pieces = [data[at:at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
    return hashlib.sha256(b"".join(xxh3_128(piece) for piece in pieces)).hexdigest()


# ---- files

def outer_state(outer_step=7, numel=300):
    state = fp32(values(numel, 37, 101, 8)) + fp32(values(numel, 53, 97, 64))
    return (b"ATLOUTER" + struct.pack("<IIQ", 1, outer_step, numel) + state
            + tree_hash(outer_step, state).encode())


def snapshot(outer_step=7, chunk_step=6, numel=300):
    chunk = fp32(values(numel, 37, 101, 8)) + fp32(values(numel, 53, 97, 64))
    digest = hashlib.sha256(chunk).digest()
    index = b"ATLSTATE" + struct.pack("<IIQQQ", 1, outer_step, numel, 2, 1763725000)
    index += hashlib.sha256(b"outer").hexdigest().encode() + struct.pack("<I", chunk_step) + digest
    head = b"ATLCHUNK" + struct.pack("<IQ", 1, numel)
    record = struct.pack("<II", 0, chunk_step) + digest
    return {
        "snapshot/index": index + hashlib.sha256(index).digest(),
        "snapshot/chunks.00000": chunk,
        "snapshot/written": head + hashlib.sha256(head).digest()[:8] + record + hashlib.sha256(record).digest()[:8],
    }


def inner_state(residual, numel=120, version=2):
    header = b"ATLINNER" + struct.pack("<IIIIQQddQQQ", version, 7, 20, 11, 1 << 40, 160, 31.5, 2.25, 151, numel,
                                       numel if residual else 0)
    header += hashlib.sha256(b"outer").hexdigest().encode()
    content = header + fp32(values(numel, 37, 101, 8)) + fp32(values(numel, 53, 97, 64)) + fp32(values(numel, 29, 89, 32))
    if residual:
        content += fp32(values(numel, 41, 83, 256))
    return content + hashlib.sha256(content).digest()


def average(round_=7):
    data = bytes((7 * i + 3) % 256 for i in range(204))  # int8-block of 200 values: two scales, 200 bytes
    return b"ATLAVERG" + struct.pack("<IIIQ", 1, round_, 1, len(data)) + canonical_digest(data).encode() + data


def line(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def signed_commit(round_, fragment):
    value = {
        "round": round_, "attempt": 2, "digest": hashlib.sha256(b"average %d" % round_).hexdigest(),
        "outer_learning_rate": 0.7, "outer_momentum": 0.9,
        "members": [{"id": f"isl-{i}", "address": {"host": "198.51.100.%d" % i, "port": 47000}, "tokens": 4096 * i,
                     **({"dials_previous": True} if i == 2 else {})} for i in (1, 2)],
        "signature": "c2lnbmF0dXJl", "epoch": 5, "holders": ["isl-1", "isl-2"], "lease_cursor": 1280,
    }
    if fragment is not None:
        value["fragment"] = fragment
    return line({"commit": value, "hub_certificate": "PEM of the hub"})


def commit(round_, fragment):
    return "\n" + signed_commit(round_, fragment) + "\n"


def logged_round(fragments=2):
    content = b"ATLROUND" + struct.pack("<II", 1, fragments)
    for state in (b"outer", b"outer after"):
        content += hashlib.sha256(state).hexdigest().encode()
    content += signed_commit(7, 7 % fragments).encode()
    return content + hashlib.sha256(content).digest()


def document(value):
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def files():
    return {
        "outer.state": outer_state(),
        **snapshot(),
        "inner.state": inner_state(residual=True),
        "inner-without-residual.state": inner_state(residual=False),
        # Of a program that kept values of frozen parameters, too.
        "inner-v1.state": inner_state(residual=True, version=1),
        "average.kept": average(),
        "round.record": logged_round(),
        "commits.log": (commit(6, 0) + commit(7, 1)).encode(),
        # Of an island from before a commit named its fragment, with a line that a crash cut short.
        "commits-v3.log": (commit(5, None) + commit(6, None) + commit(7, None)[:90]).encode(),
        "join.json": document({
            "version": 1, "run_id": "0123456789abcdef", "run_name": "Riff \u00e4", "display_name": "under the desk",
            "hub_addresses": ["hub.example.org:47000", "[2001:db8::1]:47001"], "bind": "127.0.0.1:0",
            "advertised_host": "", "local_ranks": 2, "threads": 0, "micro_batch": 3, "device": "gpu", "precision": "bf16", "region": "Oslo", "gpus": "0-3"}),
        # Of a program that knew neither regions, nor a choice of GPUs, of a micro-batch, a device or a precision.
        "join-first.json": document({
            "version": 1, "run_id": "0123456789abcdef", "run_name": "Riff", "display_name": "under the desk",
            "hub_addresses": ["hub.example.org:47000"], "bind": "0.0.0.0:47000", "advertised_host": "reef.example.org",
            "local_ranks": 1, "threads": 4}),
        "wish.json": document({"version": 1, "wish": "pause", "since_unix_seconds": 1763725000,
                               "paused_until_unix_seconds": 1763728600}),
        "epoch.json": (line({"epoch": 5, "hub_certificate": "PEM of the hub", "signature": "c2lnbmF0dXJl"}) + "\n").encode(),
    }


def main():
    directory = pathlib.Path(__file__).resolve().parent
    check = sys.argv[1:] == ["--check"]
    wrong = []
    for name, content in files().items():
        path = directory / name
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            wrong.append(name)
    for name in wrong:
        print(f"{directory / name} is not what the layout says", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
