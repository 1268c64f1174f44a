"""Time and memory of the aggregations in the space of the clients, beside a plain mean and a loop over projections.

    python benchmarks/aggregation.py --clients 50 --dimension 2000000
    python benchmarks/aggregation.py --clients 50 --dimension 23500000 --repeats 3   # ResNet-50

The loop is the direct reading of FedLD's Eq. 7: for each of n clients and K axes of length d one inner product and one
scaled addition, both in BLAS. Making the axes (a Gram matrix and K weighted sums) is not held against it. All of it is
on one thread, and ratios are of its CPU time, which on an idle machine is the wall time. Extra memory is what is
allocated beside the updates, the result included, as a share of the updates: the peak of the process's resident set
(sampled; reused pages do not show) and of Python's and NumPy's allocations (exact, without BLAS's fixed workspace).
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg.blas import saxpy, sdot

from raysim.aggregators.gram import Vectors, combine, gram_matrix, piece_grams
from raysim.aggregators.harmonize import harmonized_coefficients
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.aggregators.principal_gradients import axes_kept, principal_coefficients

Vector = NDArray[np.float32]
SHARE = 0.8
LOOP = "n·K projections"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50, help="n")
    parser.add_argument("--dimension", type=int, default=2_000_000, help="d")
    parser.add_argument("--tensors", type=int, default=160, help="pieces of equal length for granularity layer")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n, d = options.clients, options.dimension
    updates = make_updates(n, d)
    shares = sample_weights(np.arange(1, n + 1)).tolist()
    cuts = np.linspace(0, d, options.tensors + 1).astype(int).tolist()

    def mean() -> Vector:
        return weighted_sum(updates, shares)

    def principal(boundaries: list[int]) -> Vector:
        weights = [principal_coefficients(gram, SHARE, "keep") for gram in piece_grams(updates, boundaries)]
        return combine(updates, boundaries, [w.tolist() for w in weights])

    def harmonized() -> Vector:
        return weighted_sum(updates, harmonized_coefficients(gram_matrix(updates), np.array(shares)).tolist())

    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        started = time.thread_time()
        values, axes = principal_axes(updates)
        axes_seconds = time.thread_time() - started
        works: dict[str, Callable[[], Vector]] = {
            "plain mean": mean,
            "FedLD, model": lambda: principal([0, d]),
            f"FedLD, {options.tensors} layers": lambda: principal(cuts),
            "FedGH": harmonized,
            LOOP: lambda: projection_loop(updates, values, axes),
        }
        seconds = interleaved(works, options.repeats)
        fast, looped = works["FedLD, model"](), works[LOOP]()
        difference = float(np.linalg.norm(fast - looped) / np.linalg.norm(fast))
        del fast, looped
        size = n * d * 4
        print(f"n = {n}, K = {len(axes)}, d = {d:,}; updates {size / 2**30:.2f} GiB; median of {options.repeats} runs")
        print(f"{'':18}{'CPU s':>8}{'wall s':>8}{'of a mean':>11}{'of the loop':>13}{'resident':>10}{'allocated':>11}")
        for name, work in works.items():
            processor, wall = seconds[name]
            ratios = f"{processor / seconds['plain mean'][0]:>10.1f}x{f'1/{seconds[LOOP][0] / processor:.1f}':>13}"
            memory = "" if name == LOOP else f"{peak_resident(work) / size:>10.1%}{peak_allocated(work) / size:>11.1%}"
            print(f"{name:18}{processor:>8.3f}{wall:>8.3f}{ratios}{memory}")
    print(
        f"making the axes for the loop, not counted above: {axes_seconds:.3f} CPU s, {len(axes) / n:.0%} of the updates"
    )
    print(f"loop and FedLD, model differ by {difference:.1e} (relative; the loop sums in float32)")


def make_updates(clients: int, dimension: int) -> list[Vector]:
    """A common direction plus as much noise of each client's own."""
    generator = np.random.default_rng(0)
    common = generator.standard_normal(dimension, dtype=np.float32)
    result = []
    for _ in range(clients):
        own = generator.standard_normal(dimension, dtype=np.float32)
        own += common
        result.append(own)
    return result


def interleaved(works: dict[str, Callable[[], Vector]], repeats: int) -> dict[str, tuple[float, float]]:
    """Median CPU and wall seconds of each; taken in turns, so that other load on the machine meets all alike."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            processor, wall = time.process_time(), time.perf_counter()
            work()
            taken[name].append((time.process_time() - processor, time.perf_counter() - wall))
    return {name: (statistics.median(p for p, _ in t), statistics.median(w for _, w in t)) for name, t in taken.items()}


def peak_allocated(work: Callable[[], object]) -> int:
    """Peak of what Python and NumPy allocate while ``work`` runs, in bytes."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def peak_resident(work: Callable[[], object]) -> int:
    """Highest growth of the resident set while ``work`` runs, sampled every millisecond."""

    def now() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    start = now()
    peak = start
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, now())

    thread = threading.Thread(target=watch)
    thread.start()
    result = work()  # held, so that it is counted
    peak = max(peak, now())
    done.set()
    thread.join()
    del result
    return peak - start


def principal_axes(updates: Vectors) -> tuple[NDArray[np.float64], list[Vector]]:
    """λ_k [K] and v_k as K vectors [d], one weighted sum each."""
    count = len(updates)
    kept = axes_kept(count, SHARE)
    values, columns = np.linalg.eigh(gram_matrix(updates) / count)
    values, columns = values[::-1][:kept], columns[:, ::-1][:, :kept]
    scaled = columns / np.sqrt(count * values)
    return values, [weighted_sum(updates, scaled[:, k].tolist()) for k in range(kept)]


def projection_loop(updates: Vectors, values: NDArray[np.float64], axes: list[Vector]) -> Vector:
    """The mean of the revised updates, by n·K projections of length d."""
    total = np.zeros_like(updates[0])
    for update in updates:
        revised = np.zeros_like(total)
        for value, axis in zip(values, axes, strict=True):
            saxpy(axis, revised, a=value * sdot(update, axis))
        length = np.sqrt(sdot(revised, revised))
        if length > 0:
            saxpy(revised, total, a=np.sqrt(sdot(update, update)) / length / len(updates))
    return total


if __name__ == "__main__":
    main()
