"""The table of tests/gpu/run.sh, of the parts that are there: table.py RESULTS OUTPUT.json."""

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
    "build", "machine", "checks", "reference-1", "reference-2", "reference-4", "times", "inference", "speed", "torch-2048",
    "torch-1024", "torch-8192", "memcheck", "racecheck", "speed-2-ranks", "speed-large", "ring-feed",
]  # fmt: skip
LENGTHS = (1024, 2048, 8192)


def limits_of(device):
    return next((value for name, value in LIMITS.items() if name in device), (None, None))


def share(value, limit):
    return f"{100 * value / limit:5.1f} %" if limit else "      -"


def state(name, parts, failed):
    return "well" if parts[name] else "failed" if name in failed else "never run"


def print_times(times, limits):
    print(f"copy on the card: {times['copy_gigabytes_per_second']:.0f} GB/s")
    print(f"\n{'operation':32} {'microseconds':>12} {'speed':>14}   of the card")
    for name, row in times["times"].items():
        if "teraflops_per_second" in row:
            speed, unit, limit = row["teraflops_per_second"], "TFLOP/s", limits[0]
        else:
            speed, unit, limit = row["gigabytes_per_second"], "GB/s", limits[1]
        print(f"{name:32} {row['microseconds']:12.1f} {speed:8.1f} {unit:7} {share(speed, limit)}")


def print_speed(title, name, parts, failed, limits, torch):
    part = parts[name]
    if part is None:
        print(f"{title}: {state(name, parts, failed)}")
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
        beside = f"{beside['tokens_per_second']:.0f}" if beside else "never run" if torch is not None else "-"
        print(
            f"  {row['length']:6} {row['sequences_of_a_rank']:7} {row['recompute']:>6} {row['tokens_per_second']:9.0f} "
            f"{share(row['flops_per_second'], peak):>12} {share(row['torchtitan_flops_per_second'], peak):>10} "
            f"{row['planned_bytes'] / 1e9:5.1f} GB {row['used_bytes'] / 1e9:5.1f} GB {exposed}   {beside}"
        )
        if parts:
            print("         " + ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in parts.items()))


def print_checks(parts, failed):
    checks = parts["checks"] or failed.get("checks")
    if not checks:
        print(f"operations beside the processor's: {state('checks', parts, failed)}")
    else:
        rows = checks["checks"]
        off = [name for name, row in rows.items() if not row["good"]]
        worst = max(rows.items(), key=lambda item: item[1]["error"] / item[1]["tolerance"])
        print(
            f"operations beside the processor's: {len(rows) - len(off)} of {len(rows)} well; the worst, {worst[0]}, "
            f"is off by {worst[1]['error']:.1e} of {worst[1]['tolerance']:.1e}"
        )
        for name in off:
            print(f"  off: {name}, by {rows[name]['error']:.1e}")
    for ranks in (1, 2, 4):
        name = f"reference-{ranks}"
        part = parts[name] or failed.get(name)
        said = state(name, parts, failed)
        if part:
            said += (
                f": loss {part['loss_error']:.1e}, gradients {part['gradient_error']:.1e}, "
                f"parameters after 5 steps {part['parameter_error_after_5_steps']:.1e}"
            )
        print(f"llama-a, {ranks} ranks on one card: {said}")
    for tool in ("memcheck", "racecheck"):
        print(f"compute-sanitizer {tool}: {state(tool, parts, failed)}")


def print_ring_feed(parts, failed):
    part = parts["ring-feed"] or failed.get("ring-feed")
    said = state("ring-feed", parts, failed)
    if part:
        host, card = part["copied_then_encoded"], part["encoded_then_copied"]
        ratio = card["gigabytes_per_second"] / host["gigabytes_per_second"]
        said += (
            f": copied, then encoded on {part['threads']} threads {host['gigabytes_per_second']:.1f} GB/s; "
            f"encoded on the card, then copied {card['gigabytes_per_second']:.1f} GB/s; "
            + (f"the card is {ratio:.2f} times as fast" if ratio > 1 else f"the host is {1 / ratio:.2f} times as fast")
        )
        said += "" if part["good"] else "; their bytes differ"
        said = f"{part['value_bytes'] / 2**30:.2f} GiB of fp32 to {part['format']}, {said}"
    print(f"feeding the ring: {said}")


def print_inference(parts, failed, limits):
    part = parts["inference"] or failed.get("inference")
    if not part:
        print(f"inference over a cache: {state('inference', parts, failed)}")
        return
    errors = ", ".join(
        f"{name} off by {row['error']:.1e} of {row['tolerance']:.1e}" for name, row in part["checks"].items()
    )
    print(f"inference over a cache: {state('inference', parts, failed)}, a small model beside the processor: {errors}")
    print(f"  1b in bf16, {part['parameters'] / 1e9:.2f} billion parameters, tokens/s")
    print(f"  {'texts':>5} {'prompt of':>9} {'read':>9} {'written':>9} {'scored':>9}   weights read, of the card")
    for row in part["rows"]:
        speed = row["weight_gigabytes_per_second"]
        print(
            f"  {row['texts']:5} {row['prompt']:9} {row['prompt_tokens_per_second']:9.0f} "
            f"{row['tokens_per_second']:9.0f} {row['scored_tokens_per_second']:9.0f}   {speed:6.0f} GB/s "
            f"{share(speed, limits[1])}"
        )


def read(file):
    """None: it is not there, or the program ended before it had said anything."""
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def main(results, output):
    directory = pathlib.Path(results)
    parts = {name: read(directory / f"{name}.json") for name in PARTS}
    failed = {name: read(file) for name in PARTS if (file := directory / f"{name}.failed").exists()}
    machine = parts["machine"] or {"device": "unknown", "driver": "unknown", "commit": "unknown"}
    limits = limits_of(machine["device"])
    pathlib.Path(output).write_text(json.dumps(parts, indent=1) + "\n")
    print(f"\n{machine['device']}, driver {machine['driver']}, commit {machine['commit']}\n")
    print_checks(parts, failed)
    print()
    if parts["times"] is None:
        print(f"speed of the operations: {state('times', parts, failed)}")
    else:
        print_times(parts["times"], limits)
    print()
    print_inference(parts, failed, limits)
    print()
    torch = {length: parts[f"torch-{length}"] for length in LENGTHS if parts[f"torch-{length}"]}
    print_speed("1b", "speed", parts, failed, limits, torch)
    print_speed("the largest that fits", "speed-large", parts, failed, limits, None)
    print_speed("150m, ranks that share the card", "speed-2-ranks", parts, failed, limits, None)
    print()
    print_ring_feed(parts, failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
