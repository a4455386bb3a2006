#!/usr/bin/env python3
"""Tokens a second of the inner step beside HuggingFace transformers on this processor: the same model, batch and number of
threads, all sides in turn, again and again, the median of each; the most memory that each process held; and three islands at
once beside one alone.

    python3 train_peers.py --engine build/release/bin/engine_bench --python VENV/bin/python

transformers is set as a careful user sets it: sdpa attention, torch.optim's fused AdamW, gradients set to none, a thread a core;
in fp32, in bf16 by autocast over fp32 parameters, as Atoll keeps them, and with everything in bf16, which is faster and learns
worse. VENV has torch and transformers. The engine has a rank a thread. cmake --build build/release --target engine_bench

Exit status 1 where a goal is missed: 1.3 times as fast in fp32, twice in bf16, no more memory, and three islands at least 0.9 of
one alone in sum. Others that compute on the machine spoil the figures: its load at the beginning is said.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORES = len(os.sched_getaffinity(0))
# Sequences, tokens in each, steps that are timed. Of the presets' own shapes a 150m step would take minutes on two cores.
SHAPES = {"demo": (4, 256, 30), "150m": (2, 256, 3)}
# The peer's, beside which engine that counts, and how many times as fast as it that should be.
PEERS = {"transformers fp32": ("fp32", 1.3), "transformers autocast": ("bf16", 2.0), "transformers pure bf16": ("bf16", 2.0)}
ISLANDS = 3
LEAST_SUM = 0.9
BUSY = 0.3  # load average of a machine that is not idle


# ---- transformers' side, a process of its own

def worker(args):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sequences, length, steps = SHAPES[args.preset]
    autocast = args.worker == "transformers autocast"
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    config = json.loads((ROOT / "resources/models" / f"{args.preset}.json").read_text())
    for key in ("architectures", "rope_theta", "rope_scaling", "torch_dtype", "dtype", "model_type"):
        config.pop(key)  # of older spellings, or what the class says; rope_parameters stays
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="sdpa", use_cache=False)).float()
    if args.worker == "transformers pure bf16":
        model.bfloat16()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(config["vocab_size"], (sequences, length + 1))
    share = args.micro or sequences

    def step():
        optimizer.zero_grad(set_to_none=True)
        for first in range(0, sequences, share):
            part = tokens[first:first + share]
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                logits = model(part[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), part[:, 1:].flatten())
            (loss * (len(part) / sequences)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):  # as many as the engine takes before it is timed
        step()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    rate = steps * sequences * length / (time.perf_counter() - begin)
    print(f"tokens_per_second={rate:.2f} peak_bytes={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}")


# ---- runs

def figures(output):
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.e+]+)", output)}


def engine_command(args, preset, kind, threads, steps):
    sequences, length, _ = SHAPES[preset]
    shape = [preset, sequences, length, threads, threads, steps, args.micro // threads]
    return [args.engine, *map(str, shape), *(["bf16"] if kind == "bf16" else [])]


def started(args, command):
    # Each side sets its own number of threads; this is for what libraries do before.
    environment = os.environ | {"OMP_NUM_THREADS": str(args.threads), "MKL_NUM_THREADS": str(args.threads)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(process):
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)} ended with {process.returncode}: {err.strip()}")
    return figures(out)


def in_turn(args, preset):
    """What each side has shown in each of its runs."""
    commands = {f"atoll {kind}": engine_command(args, preset, kind, args.threads, SHAPES[preset][2])
                for kind in args.kinds}
    for name, (kind, _) in PEERS.items():
        if kind in args.kinds:
            commands[name] = [args.python, __file__, "--worker", name, "--preset", preset, "--threads", str(args.threads),
                              "--micro", str(args.micro)]
    seen = {name: [] for name in commands}
    for _ in range(args.repeat):
        for name, command in commands.items():
            seen[name].append(ended(started(args, command)))
    return seen


def sum_of_islands(args, preset, kind, islands, threads):
    """Tokens a second of so many engines at once, from when the first is timed to when the last is done."""
    steps = 3 * SHAPES[preset][2]
    command = engine_command(args, preset, kind, threads, steps)
    shown = [ended(process) for process in [started(args, command) for _ in range(islands)]]
    sequences, length, _ = SHAPES[preset]
    seconds = max(one["timed_to"] for one in shown) - min(one["timed_from"] for one in shown)
    return islands * steps * sequences * length / seconds


# ---- what is said of them

class Goals:
    def __init__(self):
        self.missed = 0

    def judge(self, what, value, bound, at_least):
        reached = value >= bound if at_least else value <= bound
        self.missed += not reached
        print(f"  {what}: {value:.2f} ({'at least' if at_least else 'at most'} {bound:g}){'' if reached else '  MISSED'}")


def compare_with_peers(args, preset, goals):
    sequences, length, steps = SHAPES[preset]
    print(f"{preset}: {sequences} sequences of {length} tokens, {args.threads} threads, {args.repeat} runs of {steps} steps each")
    seen = in_turn(args, preset)
    rate = {name: statistics.median(run["tokens_per_second"] for run in runs) for name, runs in seen.items()}
    peak = {name: max(run["peak_bytes"] for run in runs) for name, runs in seen.items()}
    for name, runs in seen.items():
        rates = [run["tokens_per_second"] for run in runs]
        print(f"  {name:23} median {rate[name]:8.0f} tokens/s, {min(rates):.0f} to {max(rates):.0f}, at most "
              f"{peak[name] / 1e6:6.0f} MB resident")
    for name in [name for name in PEERS if name in seen]:
        kind, faster = PEERS[name]
        goals.judge(f"atoll {kind} / {name}, tokens a second", rate[f"atoll {kind}"] / rate[name], faster, at_least=True)
        goals.judge(f"atoll {kind} / {name}, memory", peak[f"atoll {kind}"] / peak[name], 1, at_least=False)


def compare_islands(args, preset, goals):
    # Each with all cores, as an island is that knows of no other; and with one thread each, as `atoll demo` starts them.
    for kind in args.kinds:
        for threads in dict.fromkeys((args.threads, 1)):
            alone, together = [], []
            for _ in range(args.island_repeat):
                alone.append(sum_of_islands(args, preset, kind, 1, args.threads))
                together.append(sum_of_islands(args, preset, kind, ISLANDS, threads))
            print(f"{preset} {kind}: one island alone, {args.threads} threads: median {statistics.median(alone):.0f} tokens/s; "
                  f"{ISLANDS} at once, {threads} threads each, in sum: median {statistics.median(together):.0f}")
            goals.judge(f"{ISLANDS} islands / one", statistics.median(together) / statistics.median(alone), LEAST_SUM,
                        at_least=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default=str(ROOT / "build/release/bin/engine_bench"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--preset", choices=SHAPES, help="default: all of them")
    parser.add_argument("--kinds", nargs="+", choices=["fp32", "bf16"], default=["fp32", "bf16"])
    parser.add_argument("--micro", type=int, default=0, help="sequences at once, of all threads; 0: all")
    parser.add_argument("--threads", type=int, default=CORES)
    parser.add_argument("--repeat", type=int, default=10, help="runs of each side")
    parser.add_argument("--island-repeat", type=int, default=5, help="runs of three islands, and of one; 0: none")
    parser.add_argument("--island-preset", choices=SHAPES, default="demo", help="that the three train")
    parser.add_argument("--worker", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    load = os.getloadavg()[0]
    print(f"{CORES} cores, load {load:.2f} at the beginning"
          f"{'' if load <= BUSY else ': others compute, these figures are worth nothing'}")
    goals = Goals()
    for preset in [args.preset] if args.preset else SHAPES:
        compare_with_peers(args, preset, goals)
    if args.island_repeat > 0:
        compare_islands(args, args.island_preset, goals)
    sys.exit(1 if goals.missed else 0)


if __name__ == "__main__":
    main()
