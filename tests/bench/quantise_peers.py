#!/usr/bin/env python3
"""Atoll's int8-block beside pi-quant's uint8 (PyPI: pypiquant), on the same machine, in turns.

    python3 -m venv peers && peers/bin/pip install pypiquant numpy
    peers/bin/python tests/bench/quantise_peers.py build/release/bin/atoll

pi-quant finds a scale for the whole tensor and quantises (two passes), and adds what it dequantises; Atoll has a scale
for every 128 values. Times are medians; each round runs both, so that what else the machine does falls on both.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # pages of the same size for both: they alone are worth 20 %
import numpy
import piquant


def peer_times(context, x, encoded, total, repeats):
    """Seconds of parameters + quantise, and of dequantise-and-add."""
    quantise, add = [], []
    scale, zero = 1.0, 0
    for repeat in range(repeats + 1):
        begin = time.perf_counter()
        scale, zero = context.compute_quant_params_ptr_float32(x.ctypes.data, piquant.DataType.UINT8, x.size)
        context.quantize_ptr(
            x.ctypes.data, piquant.DataType.F32, encoded.ctypes.data, piquant.DataType.UINT8,
            numel=x.size, scale=scale, zero_point=zero, round_mode=piquant.RoundMode.NEAREST)
        middle = time.perf_counter()
        context.dequantize_ptr(
            encoded.ctypes.data, piquant.DataType.UINT8, total.ctypes.data, piquant.DataType.F32,
            numel=x.size, scale=scale, zero_point=zero, reduce_op=piquant.ReduceOp.ADD)
        end = time.perf_counter()
        if repeat > 0:
            quantise.append(middle - begin)
            add.append(end - middle)
    return quantise, add


def own_times(atoll, threads, mib, repeats):
    command = [atoll, "bench", "quantise", "--json", "--threads", str(threads), "--payload", f"{mib}MiB",
               "--repeat", str(repeats)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    by_name = {operation["operation"]: operation["seconds"] for operation in result["operations"]}
    return by_name["quantise"], by_name["dequantise-and-add"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("atoll", help="the program")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--payload", type=int, default=256, help="MiB of fp32")
    parser.add_argument("--rounds", type=int, default=3, help="each of --repeat runs of both")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()

    numel = arguments.payload * (1 << 18)
    x = numpy.random.default_rng(1).standard_normal(numel, dtype=numpy.float32)
    encoded = numpy.zeros(numel, dtype=numpy.uint8)
    total = numpy.zeros(numel, dtype=numpy.float32)
    for threads in arguments.threads:
        context = piquant.Context(threads)
        own, peer = ([], []), ([], [])
        for _ in range(arguments.rounds):
            for sink, times in ((peer, peer_times(context, x, encoded, total, arguments.repeat)),
                                (own, own_times(arguments.atoll, threads, arguments.payload, arguments.repeat))):
                sink[0].extend(times[0])
                sink[1].extend(times[1])
        for which, name in enumerate(("quantise", "dequantise-and-add")):
            ours = statistics.median(own[which]) * 1e3
            theirs = statistics.median(peer[which]) * 1e3
            print(f"{arguments.payload} MiB, threads: {threads}, {name:<19} atoll {ours:7.2f} ms, "
                  f"pi-quant {theirs:7.2f} ms: {theirs / ours:.2f} x its speed")


if __name__ == "__main__":
    main()
