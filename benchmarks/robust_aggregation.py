"""CPU time and memory of the robust rules beside ByzFL's (pip install byzfl), at 20 % Byzantine vectors.

    python -m benchmarks.robust_aggregation --clients 50 --dimension 2000000

Ratios below 1 mean that raysim's rule takes less. Memory is what Python and NumPy allocate at most beside the updates.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import threadpoolctl

from aggregators import robust
from aggregators.gram import Doubles, gram_matrix, squared_lengths
from aggregators.means import weighted_sum
from aggregators.sorted_coordinates import coordinate_median, trimmed_mean
from benchmarks.aggregation import Vector, interleaved, make_updates, peak_allocated


def main() -> None:
    import byzfl

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50, help="n")
    parser.add_argument("--dimension", type=int, default=2_000_000, help="d")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    # An array [n, d], as ByzFL needs it, so that no copy of a list is in its numbers.
    stack, f = np.stack(make_updates(options.clients, options.dimension)), options.clients // 5
    updates = list(stack)

    def combined(rule: Callable[[Doubles], Doubles]) -> Callable[[], Vector]:
        return lambda: weighted_sum(updates, rule(gram_matrix(updates)).tolist())

    def clipped(rule: Callable[[Doubles, float], Doubles]) -> Vector:
        return weighted_sum(updates, rule(np.diag(squared_lengths(updates)), 100.0).tolist())

    def mixed_median() -> Vector:
        return coordinate_median(updates, robust.nearest_neighbor_mixing(gram_matrix(updates), f))

    pairs: dict[str, tuple[Callable[[], Vector], Callable[[], Vector]]] = {
        "median": (lambda: coordinate_median(updates), lambda: byzfl.Median()(stack)),
        "trimmed mean": (lambda: trimmed_mean(updates, f), lambda: byzfl.TrMean(f)(stack)),
        "multi-Krum": (combined(lambda gram: robust.multi_krum(gram, f)), lambda: byzfl.MultiKrum(f)(stack)),
        "geometric median": (combined(robust.geometric_median), lambda: byzfl.GeometricMedian()(stack)),
        "centered clipping": (
            lambda: clipped(robust.centered_clipping),
            lambda: byzfl.CenteredClipping()(stack),
        ),
        "mixing, then median": (mixed_median, lambda: byzfl.Median()(byzfl.NNM(f)(stack))),
    }
    print(f"n = {options.clients}, d = {options.dimension:,}; median of {options.repeats} runs")
    print(f"{'':22}{'CPU s':>8}{'ByzFL':>8}{'ratio':>8}{'MiB':>9}{'ByzFL':>9}{'ratio':>8}")
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        for name, (own, other) in pairs.items():
            taken = interleaved({"own": own, "other": other}, options.repeats)
            first, second = taken["own"][0], taken["other"][0]
            memory, others = peak_allocated(own) / 2**20, peak_allocated(other) / 2**20
            times = f"{first:>8.2f}{second:>8.2f}{first / second:>8.2f}"
            print(f"{name:22}{times}{memory:>9.1f}{others:>9.1f}{memory / others:>8.2f}")


if __name__ == "__main__":
    main()
