#!/usr/bin/env python3
"""The loss of the first steps of training, beside HuggingFace transformers': the same initial parameters (Atoll's, exported),
tokens, AdamW, schedule and clipping, in fp32, and in bf16 with fp32 parameters. The latter are two of transformers': "autocast"
keeps sums and norms in fp32, "hf bf16" has all activations and a copy of the weights in bf16, as Atoll and FSDP have them.

    python3 curves.py --preset 150m --sequences 2 --length 64 --python VENV/bin/python

How far rounding alone drives two such curves apart is measured: transformers once more, with eager attention in place of sdpa,
so that it adds up in another order, and after each step with parameters as another program might have rounded them. Atoll's
fp32 differences are given as multiples of that run's, in the root mean square over the steps. Roundings to bf16 are far larger
than these, and two programs round in different places: there the measure is how far "hf bf16" is from fp32. Exit status 1 where
Atoll's differences are larger than rounding explains, or it held more memory than was planned.

VENV has torch and transformers. Tokens are bytes, or for larger vocabularies words, of this project's own sources and
documents. cmake --build build/release --target training_curve
"""

import argparse
import array
import collections
import json
import math
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAMW = {"betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}  # AdamWHyper's
CLIP_NORM = 1.0
BYTES = 257  # a vocabulary of so many, or a little more, is of bytes
# Times what one run of transformers' drifts by rounding. Errors grow with the steps as they please, so that the size of one
# drift is chance: of two runs of the same program one is often twice as far off as the other.
MOST = 3.0


def learning_rate(args, step):
    """Warm-up, then stable, then 1 - sqrt to 0."""
    if step + 1 < args.warmup:
        return args.learning_rate * (step + 1) / args.warmup
    into_decay = step - (args.steps - args.decay)
    if args.decay == 0 or into_decay < 0:
        return args.learning_rate
    return args.learning_rate * (1 - math.sqrt(into_decay / args.decay))


# ---- transformers' side, a process of its own

def nudge(parameters, generator, torch):
    """Two roundings to nearest of a sum are 0.41 of the last place apart, in the root mean square: each sixth parameter becomes
    the next number above or below."""
    with torch.no_grad():
        for parameter in parameters:
            chance = torch.rand(parameter.shape, generator=generator)
            up, down = torch.tensor(float("inf")), torch.tensor(-float("inf"))
            target = torch.where(chance < 1 / 12, up, torch.where(chance < 1 / 6, down, parameter))
            parameter.copy_(torch.nextafter(parameter, target))


def clip(parameters, torch):
    """torch.nn.utils.clip_grad_norm_, but for its sum in fp32: of the 10^8 squares of a 150m model that loses so many small
    ones that the norm is 3e-5 too small, and which step is how much clipped is a hundred times further off than by rounding.
    """
    norm = torch.stack([parameter.grad.double().pow(2).sum() for parameter in parameters]).sum().sqrt()
    for parameter in parameters:
        parameter.grad.mul_(min(1.0, CLIP_NORM / (norm.item() + 1e-6)))
    return norm


def worker(args):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(args.threads)
    attention = "eager" if args.nudged else "sdpa"
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32, attn_implementation=attention)
    model.config.use_cache = False
    model.train()
    masters = [torch.nn.Parameter(parameter.detach().clone()) for parameter in model.parameters()]
    if not args.bf16:
        masters = list(model.parameters())
    else:
        model.bfloat16()
    optimizer = torch.optim.AdamW(masters, lr=args.learning_rate, fused=True, **ADAMW)
    generator = torch.Generator().manual_seed(1)
    data = torch.frombuffer(bytearray(args.tokens.read_bytes()), dtype=torch.int32).long()
    for step, batch in enumerate(data.view(args.steps, args.sequences, args.length + 1)):
        model.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.autocast):
            logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        if args.bf16:
            for master, parameter in zip(masters, model.parameters()):
                master.grad = parameter.grad.float()
        norm = clip(masters, torch)
        optimizer.param_groups[0]["lr"] = learning_rate(args, step)
        optimizer.step()
        if args.nudged:
            nudge(masters, generator, torch)
        if args.bf16:
            with torch.no_grad():
                for master, parameter in zip(masters, model.parameters()):
                    parameter.copy_(master)
        print(f"step={step} learning_rate={learning_rate(args, step):.9g} loss={loss.item():.9g} "
              f"gradient_norm={norm.item():.9g}", flush=True)
    print(f"peak_bytes={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}")


# ---- tokens

def tokens_of(args, vocabulary):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md", "*.cpp", "*.h"], check=True, capture_output=True,
                           text=True).stdout.split()
    text = "\n".join((ROOT / name).read_text(errors="replace") for name in names if (ROOT / name).is_file())
    if BYTES <= vocabulary < 2 * BYTES:
        stream = list(text.encode())
    else:
        words = re.findall(r"\w+|[^\w\s]|\n+| +", text)
        ranked = collections.Counter(words).most_common(vocabulary - 1)
        number = {word: rank for rank, (word, _) in enumerate(ranked)}
        stream = [number.get(word, vocabulary - 1) for word in words]
    chance = random.Random(args.seed)
    tokens = array.array("i")
    for _ in range(args.steps * args.sequences):
        begin = chance.randrange(len(stream) - args.length - 1)
        tokens.extend(stream[begin:begin + args.length + 1])
    return tokens


# ---- runs

class Curve:
    def __init__(self, name, output):
        self.name = name
        self.losses = [float(x) for x in re.findall(r"\bloss=(\S+)", output)]
        self.norms = [float(x) for x in re.findall(r"gradient_norm=(\S+)", output)]
        self.rates = [float(x) for x in re.findall(r"learning_rate=(\S+)", output)]
        self.bytes = {key: int(value) for key, value in re.findall(r"(\w+_bytes)=(\d+)", output)}


def ran(name, command, steps, kept):
    """What it printed stays in `kept`; a run that is whole there is not made again."""
    if kept.exists() and "_bytes=" in kept.read_text():
        return Curve(name, kept.read_text())
    print(f"{name} ...", file=sys.stderr, flush=True)
    with kept.open("w") as output:
        code = subprocess.run([str(part) for part in command], stdout=output).returncode
    curve = Curve(name, kept.read_text())
    if code != 0 or len(curve.losses) != steps:
        sys.exit(f"{name}: ended with {code} after {len(curve.losses)} of {steps} steps; its words are above")
    return curve


def run_all(args, directory):
    model, tokens, called = directory / "model", directory / "tokens", directory / "options"
    options = json.dumps({key: str(value) for key, value in sorted(vars(args).items()) if key not in ("program", "python")})
    if called.exists() and called.read_text() != options:
        sys.exit(f"{directory} is of other options, {called.read_text()}: name another directory, or delete it")
    if not called.exists():
        subprocess.run([args.program, "fresh", "--preset", args.preset, "--output", model], check=True)
        vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
        tokens.write_bytes(tokens_of(args, vocabulary).tobytes())
        called.write_text(options)
    shape = ["--model", model, "--tokens", tokens, "--sequences", args.sequences, "--length", args.length,
             "--steps", args.steps, "--threads", args.threads, "--learning-rate", args.learning_rate,
             "--warmup", args.warmup, "--decay", args.decay]
    engine = [args.program, "train", *shape, "--micro-batch", args.micro]
    peer = [args.python, __file__, "--worker", *shape]
    runs = {"atoll fp32": engine, "hf fp32": peer, "hf fp32 nudged": [*peer, "--nudged"],
            "atoll bf16": [*engine, "--bf16"], "hf bf16": [*peer, "--bf16"],
            "hf autocast": [*peer, "--autocast"]}
    return {name: ran(name, command, args.steps, directory / name.replace(" ", "-")) for name, command in runs.items()}


# ---- what is said of them

def differences(one, other):
    return [a - b for a, b in zip(one.losses, other.losses)]


def rms(values):
    return math.sqrt(sum(value * value for value in values) / len(values))


def print_table(args, curves):
    names = ["hf fp32", "atoll fp32", "hf fp32 nudged", "atoll bf16", "hf bf16", "hf autocast"]
    print("loss in nats a token; from the second column of losses on: minus that of hf fp32")
    print("step        rate  " + "  ".join(f"{name:>14}" for name in names))
    base = curves["hf fp32"]
    for step in range(args.steps):
        others = "  ".join(f"{curves[name].losses[step] - base.losses[step]:+14.2e}" for name in names[1:])
        print(f"{step:4}  {base.rates[step]:10.4e}  {base.losses[step]:14.6f}  {others}")


def distance(curves, one, other):
    """Its root mean square over the steps, at least the rounding of a loss; and in words."""
    of = differences(curves[one], curves[other])
    one_rounding = 2.0 ** (math.floor(math.log2(max(curves[other].losses))) - 23)  # transformers tells its losses in fp32
    norms = [abs(a / b - 1) for a, b in zip(curves[one].norms, curves[other].norms)]
    print(f"{one} - {other}: root mean square {rms(of):.3e}, greatest {max(map(abs, of)):.3e} (step "
          f"{max(range(len(of)), key=lambda step: abs(of[step]))}), last {of[-1]:+.3e}; gradient norms differ by at most "
          f"{max(norms):.2e}")
    return max(rms(of), one_rounding)


def compared(curves):
    """Ratios that are at most MOST where all is rounding."""
    fp32 = distance(curves, "atoll fp32", "hf fp32")
    drift = distance(curves, "hf fp32 nudged", "hf fp32")
    bf16 = distance(curves, "atoll bf16", "hf fp32")
    their_bf16 = distance(curves, "hf bf16", "hf fp32")
    autocast = distance(curves, "hf autocast", "hf fp32")
    beside = distance(curves, "atoll bf16", "hf bf16")
    print(f"bf16: Atoll's distance from fp32 / that of autocast: {bf16 / autocast:.2f}")
    return {"fp32: Atoll's difference / drift by rounding": fp32 / drift,
            "bf16: Atoll's distance from fp32 / that of hf bf16": bf16 / their_bf16,
            "bf16: Atoll's difference from hf bf16 / distance of hf bf16 from fp32": beside / their_bf16}


def judged(args, curves):
    worst_rate = max(abs(mine / theirs - 1) if theirs else abs(mine)
                     for mine, theirs in zip(curves["atoll fp32"].rates, curves["hf fp32"].rates))
    checks = {what: (ratio, MOST) for what, ratio in compared(curves).items()}
    checks["learning rates differ, relatively"] = (worst_rate, 1e-8)
    for name in ("atoll fp32", "atoll bf16"):
        of = curves[name].bytes
        planned, held = of["planned_bytes"], of["held_bytes"]
        whole, whole_planned = held + of["held_before_bytes"], planned + of["planned_program_bytes"]
        print(f"{name}: planned {planned / 1e6:.0f} MB for engine and step, held {held / 1e6:.0f} MB ({held / planned:.3f}); the "
              f"whole process: planned {whole_planned / 1e6:.0f} MB, held {whole / 1e6:.0f} MB")
        checks[f"{name}: memory of the process / planned"] = (whole / whole_planned, 1)
    for name in ("hf fp32", "hf bf16", "hf autocast"):
        print(f"{name}: held {curves[name].bytes['peak_bytes'] / 1e6:.0f} MB, the whole process")
    for what, (value, most) in checks.items():
        print(f"{what}: {value:.3g} (at most {most:g}){'' if value <= most else '  TOO MUCH'}")
    return all(value <= most for value, most in checks.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/release/bin/training_curve")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--preset", default="150m")
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--micro", type=int, default=0, help="sequences that a rank of Atoll computes at once; 0: all")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--learning-rate", type=float, help="default: the preset's")
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--decay", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the places in the text")
    parser.add_argument("--keep", type=pathlib.Path,
                        help="directory for the model, the tokens and what each run printed; of a call with the same options, "
                             "runs that are there are not made again")
    for hidden in ("--worker", "--nudged", "--bf16", "--autocast"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    for hidden in ("--model", "--tokens"):
        parser.add_argument(hidden, type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    if args.learning_rate is None:
        run = json.loads((ROOT / "resources/presets" / f"{args.preset}.json").read_text())["run"]
        args.learning_rate = run["inner"]["learning_rate"]
    with tempfile.TemporaryDirectory(prefix="atoll-curves-") as temporary:
        directory = args.keep or pathlib.Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        curves = run_all(args, directory)
    print_table(args, curves)
    sys.exit(0 if judged(args, curves) else 1)


if __name__ == "__main__":
    main()
