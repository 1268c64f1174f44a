"""ε of central privacy by how cohorts are sampled: ``python -m benchmarks.sampling_epsilon`` (docs/privacy.md).

The same noise on the same sums, counted twice: cohorts of fixed size with one client replaced, and Poisson cohorts of
that mean size with one client added or removed.
"""

from __future__ import annotations

from raysim.config.privacy import Privacy
from raysim.wrappers.accounting import Sums, epsilon

CLIENTS, ROUNDS = 1000, 100
COHORTS, NOISES = (10, 100, 500), (1.0, 2.0, 4.0)
PRIVACY = Privacy("central", noise_multiplier=1.0)  # of which δ and the accountant are used


def fixed(cohort: int, noise: float) -> float:
    """ε of cohorts of fixed size, one client replaced."""
    return epsilon([(Sums(cohort, CLIENTS, True, ROUNDS),)], noise, PRIVACY)


def poisson(cohort: int, noise: float) -> float:
    """ε of Poisson cohorts of this mean size, one client added or removed."""
    return epsilon([(Sums(cohort / CLIENTS, 1, False, ROUNDS),)], noise, PRIVACY)


def table() -> str:
    """The Markdown table."""
    words = ("fixed, one client replaced", "poisson, one client added or removed")
    heads = (f"cohort of {CLIENTS:,}", "z", *(f"ε, sampling: {each}" for each in words), "ratio")
    lines = [f"| {' | '.join(heads)} |", "|---:" * len(heads) + "|"]
    for cohort in COHORTS:
        for noise in NOISES:
            replaced, added = fixed(cohort, noise), poisson(cohort, noise)
            lines.append(f"| {cohort} | {noise:g} | {replaced:.3g} | {added:.3g} | {replaced / added:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
