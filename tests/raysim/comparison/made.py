"""Outcomes made by hand: two rows, two columns of two measures, three seeds."""

from __future__ import annotations

from raysim.comparison.outcomes import Outcomes, Pairing
from raysim.results.measures import find

ACCURACY, LOSS = find("accuracy"), find("loss")


def outcomes() -> Outcomes:
    """FedAvg is 50, 51, 52 %; B_1 & co is 10 points above in column A, and has one run in column B."""
    values = {
        ("FedAvg", "A", "accuracy"): {0: 0.5, 1: 0.51, 2: 0.52},
        ("B_1 & co", "A", "accuracy"): {0: 0.6, 1: 0.62, 2: 0.61},
        ("FedAvg", "B", "accuracy"): {0: 0.25, 1: 0.26, 2: 0.27},
        ("B_1 & co", "B", "accuracy"): {0: 0.3},
        ("FedAvg", "A", "loss"): {0: 1.5, 1: 1.25, 2: 1.75},
    }
    return Outcomes(
        "Two µ-rows | 50 %",
        ("FedAvg", "B_1 & co"),
        ("A", "B"),
        {ACCURACY: "accuracy", LOSS: "loss"},
        values,
        (Pairing(("B_1 & co",), "FedAvg", ACCURACY),),
        statistics=True,
        failed={("B_1 & co", "B"): 2},
        paper={("FedAvg", "A", "accuracy"): "53.1"},
        heads={("FedAvg", "A", 0): "ab" * 32, ("FedAvg", "A", 1): "cd" * 32},
    )
