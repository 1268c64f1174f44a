"""Time and memory of the robust rules beside ByzFL's (pip install byzfl), at 20 % Byzantine vectors.

    python -m benchmarks.robust_aggregation --dimension 23500000        # ResNet-50
    python -m benchmarks.robust_aggregation --dimension 1000000 --rules "trimmed mean" median

raysim and ByzFL take the same array [n, d], each in a process of its own, with as many threads as they choose; a time
is the median of several runs, and so is the CPU time of all threads. Memory is what Python and NumPy allocate at most
beside the updates. A process asks for no more than is free at its start but a sixth of the machine: a rule that needs
more "does not fit".
Ratios below 1 mean that raysim's rule takes less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.aggregation import Vector, interleaved, peak_allocated
from raysim.aggregators import robust
from raysim.aggregators.gram import Doubles, gram_matrix, squared_lengths
from raysim.aggregators.means import weighted_sum
from raysim.aggregators.sorted_coordinates import coordinate_median, trimmed_mean

SIDES = ("raysim", "byzfl")
RULES = ("median", "trimmed mean", "multi-Krum", "geometric median", "centered clipping", "mixing, then median")
Cost = tuple[float, float, float]
"""Seconds, CPU seconds and MiB."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50, help="n")
    parser.add_argument("--dimension", type=int, default=2_000_000, help="d")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rules", nargs="+", choices=RULES, default=RULES)
    parser.add_argument("--side", choices=SIDES, help="measure this side alone and print JSON")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measured(options)))
        return
    own, other = (in_a_process(side) for side in SIDES)
    print(f"n = {options.clients}, d = {options.dimension:,}; median of {options.repeats} runs")
    heads = "".join(f"{name:>9}{'ByzFL':>9}{'ratio':>8}" for name in ("s", "CPU s", "MiB"))
    print(f"{'':20}{heads}")
    for rule in options.rules:
        print(f"{rule:20}{columns(own[rule], other[rule])}")


def in_a_process(side: str) -> dict[str, Cost | None]:
    command = [sys.executable, "-m", "benchmarks.robust_aggregation", *sys.argv[1:], "--side", side]
    result: dict[str, Cost | None] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return result


def columns(own: Cost | None, other: Cost | None) -> str:
    if own is None or other is None:
        seconds, processor, memory = own or other or (np.nan, np.nan, np.nan)
        missing = "raysim" if own is None else "ByzFL"
        return f"{seconds:>9.2f} s, {processor:.2f} CPU s, {memory:.1f} MiB; {missing} does not fit"
    return "".join(f"{mine:>9.2f}{its:>9.2f}{mine / its:>8.2f}" for mine, its in zip(own, other, strict=True))


def measured(options: argparse.Namespace) -> dict[str, Cost | None]:
    """Seconds and memory of each rule on one side; None: it does not fit into memory."""
    kilobytes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (1024 * int(kilobytes[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    limit = available - total // 6
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    stack = make_stack(options.clients, options.dimension)
    works = (own_rules if options.side == "raysim" else byzfl_rules)(stack, options.clients // 5)
    result: dict[str, Cost | None] = {}
    for rule in options.rules:
        try:
            processor, seconds = interleaved({rule: works[rule]}, options.repeats)[rule]
            result[rule] = seconds, processor, peak_allocated(works[rule]) / 2**20
        except MemoryError:
            result[rule] = None
        print(f"{options.side}, {rule}: {result[rule]}", file=sys.stderr, flush=True)
    return result


def make_stack(clients: int, dimension: int) -> NDArray[np.float32]:
    """A common direction plus as much noise of each client's own [n, d], made in place: half as much memory."""
    generator = np.random.default_rng(0)
    common = generator.standard_normal(dimension, dtype=np.float32)
    stack = np.empty((clients, dimension), np.float32)
    for row in stack:
        generator.standard_normal(dimension, dtype=np.float32, out=row)
        row += common
    return stack


def own_rules(stack: NDArray[np.float32], byzantine: int) -> dict[str, Callable[[], Vector]]:
    updates = list(stack)

    def combined(rule: Callable[[Doubles], Doubles]) -> Callable[[], Vector]:
        return lambda: weighted_sum(updates, rule(gram_matrix(updates)).tolist())

    def clipped() -> Vector:
        return weighted_sum(updates, robust.centered_clipping(np.diag(squared_lengths(updates)), 100.0).tolist())

    def mixed_median() -> Vector:
        return coordinate_median(updates, robust.nearest_neighbor_mixing(gram_matrix(updates), byzantine))

    return {
        "median": lambda: coordinate_median(updates),
        "trimmed mean": lambda: trimmed_mean(updates, byzantine),
        "multi-Krum": combined(lambda gram: robust.multi_krum(gram, byzantine)),
        "geometric median": combined(robust.geometric_median),
        "centered clipping": clipped,
        "mixing, then median": mixed_median,
    }


def byzfl_rules(stack: NDArray[np.float32], byzantine: int) -> dict[str, Callable[[], Vector]]:
    import byzfl

    return {
        "median": lambda: byzfl.Median()(stack),
        "trimmed mean": lambda: byzfl.TrMean(byzantine)(stack),
        "multi-Krum": lambda: byzfl.MultiKrum(byzantine)(stack),
        "geometric median": lambda: byzfl.GeometricMedian()(stack),
        "centered clipping": lambda: byzfl.CenteredClipping()(stack),
        "mixing, then median": lambda: byzfl.Median()(byzfl.NNM(byzantine)(stack)),
    }


if __name__ == "__main__":
    main()
