"""The table of tests/gpu/run.sh, of the parts that are there: table.py RESULTS OUTPUT.json. What is not there never ran."""

import json
import pathlib
import sys

# Of a card: dense bf16 TFLOP/s and GB/s, as its maker says them.
LIMITS = {
    "H200": (989, 4800),
    "H100 PCIe": (756, 2000),
    "H100 NVL": (835, 3900),
    "H100": (989, 3350),
    "A100": (312, 2039),
    "B200": (2250, 8000),
    "L40S": (362, 864),
    "RTX 4090": (165, 1008),
}
PARTS = [
    "build", "machine", "checks", "reference-1", "reference-2", "reference-4", "times", "speed", "torch-2048", "torch-1024",
    "torch-8192", "memcheck", "racecheck", "speed-2-ranks", "speed-large",
]  # fmt: skip
LENGTHS = (1024, 2048, 8192)


def limits_of(device):
    return next((value for name, value in LIMITS.items() if name in device), (None, None))


def share(value, limit):
    return f"{100 * value / limit:5.1f} %" if limit else "      -"


def print_times(times, limits):
    print(f"copy on the card: {times['copy_gigabytes_per_second']:.0f} GB/s")
    print(f"\n{'operation':32} {'microseconds':>12} {'speed':>14}   of the card")
    for name, row in times["times"].items():
        if "teraflops_per_second" in row:
            speed, unit, limit = row["teraflops_per_second"], "TFLOP/s", limits[0]
        else:
            speed, unit, limit = row["gigabytes_per_second"], "GB/s", limits[1]
        print(f"{name:32} {row['microseconds']:12.1f} {speed:8.1f} {unit:7} {share(speed, limit)}")


def print_speed(title, part, limits, torch):
    if part is None:
        print(f"{title}: never run")
        return
    print(f"{title}: {part['parameters'] / 1e9:.2f} billion parameters, {part['layers']} layers, {part['ranks']} ranks")
    print(
        f"  {'length':>6} {'at once':>7} {'again':>6} {'tokens/s':>9} {'MFU 6N+12LdS':>12} {'torchtitan':>10} "
        f"{'planned':>8} {'used':>8} {'exposed':>8}   torch.compile tokens/s"
    )
    for row in part["rows"]:
        peak = limits[0] * 1e12 if limits[0] else None
        parts = row["parts"]
        exposed = f"{1e3 * parts['exposed_communication']:5.1f} ms" if parts else "      -"
        beside = (torch or {}).get(row["length"])
        beside = f"{beside['tokens_per_second']:.0f}" if beside else "never run"
        print(
            f"  {row['length']:6} {row['sequences_of_a_rank']:7} {row['recompute']:>6} {row['tokens_per_second']:9.0f} "
            f"{share(row['flops_per_second'], peak):>12} {share(row['torchtitan_flops_per_second'], peak):>10} "
            f"{row['planned_bytes'] / 1e9:5.1f} GB {row['used_bytes'] / 1e9:5.1f} GB {exposed}   {beside}"
        )
        if parts:
            print("         " + ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in parts.items()))


def print_checks(parts):
    checks = parts["checks"]
    if checks is None:
        print("operations beside the processor's: never run, or some are off")
    else:
        worst = max(checks["checks"].items(), key=lambda item: item[1]["error"] / item[1]["tolerance"])
        print(
            f"operations beside the processor's: {len(checks['checks'])} well; the worst, {worst[0]}, is off by "
            f"{worst[1]['error']:.1e} of {worst[1]['tolerance']:.1e}"
        )
    for ranks in (1, 2, 4):
        part = parts[f"reference-{ranks}"]
        said = "never run, or off" if part is None else (
            f"loss {part['loss_error']:.1e}, gradients {part['gradient_error']:.1e}, "
            f"parameters after 5 steps {part['parameter_error_after_5_steps']:.1e}"
        )  # fmt: skip
        print(f"llama-a, {ranks} ranks on one card: {said}")
    for tool in ("memcheck", "racecheck"):
        print(f"compute-sanitizer {tool}: {'never run, or it found something' if parts[tool] is None else 'well'}")


def main(results, output):
    directory = pathlib.Path(results)
    read = lambda name: json.loads(path.read_text()) if (path := directory / f"{name}.json").exists() else None
    parts = {name: read(name) for name in PARTS}
    machine = parts["machine"] or {"device": "unknown", "driver": "unknown", "commit": "unknown"}
    limits = limits_of(machine["device"])
    pathlib.Path(output).write_text(json.dumps(parts, indent=1) + "\n")
    print(f"\n{machine['device']}, driver {machine['driver']}, commit {machine['commit']}\n")
    print_checks(parts)
    print()
    if parts["times"] is None:
        print("speed of the operations: never run")
    else:
        print_times(parts["times"], limits)
    print()
    torch = {length: parts[f"torch-{length}"] for length in LENGTHS if parts[f"torch-{length}"]}
    print_speed("1b", parts["speed"], limits, torch)
    print_speed("the largest that fits", parts["speed-large"], limits, None)
    print_speed("150m, ranks that share the card", parts["speed-2-ranks"], limits, None)


if __name__ == "__main__":
    main(*sys.argv[1:])
