#!/usr/bin/env python3
"""Tokens a second of the inner step beside HuggingFace transformers with torch.optim's fused AdamW, on this processor: the same
model, batch and number of threads, in turn, the median of several runs each; and the most memory that each held.

    python3 train_peers.py --engine build/release/bin/engine_bench --python VENV/bin/python --preset demo

VENV has torch, transformers and numpy. The engine has a rank a thread.
"""

import argparse
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

MODELS = pathlib.Path(__file__).resolve().parents[2] / "resources" / "models"


def worker(args):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    config = json.loads((MODELS / f"{args.preset}.json").read_text())
    for key in ("architectures", "rope_theta", "rope_scaling", "torch_dtype", "dtype", "model_type"):
        config.pop(key, None)
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="sdpa", use_cache=False)).float()
    if args.bf16 and not args.autocast:
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(config["vocab_size"], (args.sequences, args.length + 1))
    share = args.micro or args.sequences

    def step():
        optimizer.zero_grad(set_to_none=True)
        for first in range(0, args.sequences, share):
            part = tokens[first:first + share]
            with torch.autocast("cpu", torch.bfloat16, enabled=args.autocast):
                logits = model(part[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), part[:, 1:].flatten())
            (loss * (len(part) / args.sequences)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    step()
    begin = time.perf_counter()
    for _ in range(args.steps):
        step()
    seconds = time.perf_counter() - begin
    rate = args.steps * args.sequences * args.length / seconds
    print(f"tokens_per_second={rate:.0f} peak_bytes={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}")


def ran(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    usage = re.search(r"peak_bytes=(\d+)", out)
    return float(re.search(r"tokens_per_second=(\d+)", out).group(1)), int(usage.group(1)) if usage else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="build/release/bin/engine_bench")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--micro", type=int, default=0, help="sequences at once, of all threads; 0: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--autocast", action="store_true", help="the peer keeps fp32 parameters, as the engine does")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    shape = [args.preset, args.sequences, args.length, args.threads, args.threads, args.steps, args.micro // args.threads]
    engine = [args.engine, *map(str, shape), *(["bf16"] if args.bf16 else [])]
    peer = [args.python, __file__, "--worker", *sys.argv[1:]]
    rates = {"engine": [], "transformers": []}
    peaks = {"engine": 0, "transformers": 0}
    for _ in range(args.repeat):
        for name, command in (("engine", engine), ("transformers", peer)):
            rate, peak = ran(command)
            rates[name].append(rate)
            peaks[name] = max(peaks[name], peak)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, values in rates.items():
        print(f"{name:13} median {medians[name]:.0f} tokens/s, {min(values):.0f} to {max(values):.0f}, at most "
              f"{peaks[name] / 1e6:.0f} MB")
    print(f"ratio {medians['engine'] / medians['transformers']:.2f}")


if __name__ == "__main__":
    main()
