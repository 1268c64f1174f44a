"""Several runs from Python, and a table of their results.

Compares FedAvg with FedProx on handwritten digits that are split unevenly over ten clients, each with two seeds:

    python examples/loop.py

Every run writes a folder below ``runs/loop``; the table has one line per method, the mean and the standard deviation of
its accuracy over the seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

import raysim

SETTINGS: dict[str, Any] = {
    "workload": {"name": "digits", "clients": 10, "partition": "dirichlet", "alpha": 0.3},
    "model": "mlp",
    "schedule": {"rounds": 10, "local_epochs": 2},
    "engine": {"dashboard": False},
}
"""Options of all runs; what is not named here has its default (python -m raysim.launch --help)."""

METHODS: dict[str, dict[str, Any]] = {
    "FedAvg": {"name": "fedavg"},
    "FedProx, μ = 0.01": {"name": "fedprox", "mu": 0.01},
    "FedProx, μ = 1": {"name": "fedprox", "mu": 1.0},
}


def compare(
    methods: Mapping[str, Mapping[str, Any]], seeds: Sequence[int], settings: Mapping[str, Any], folder: str
) -> pd.DataFrame:
    """Run every method with every seed; one row per run with its last accuracies.

    Args:
        methods: label in the table → the method's name and its options.
        seeds: each gives another split of the data, other initial values and another order of mini-batches.
        settings: the settings that all runs share.
        folder: where the run folders go; each must be new.
    """
    rows: list[dict[str, object]] = []
    for label, method in methods.items():
        for seed in seeds:
            output = f"{folder}/{method['name']}-{len(rows)}"
            result = raysim.run({**settings, "method": method, "seed": seed, "output": output})
            judged = result.rounds.dropna(subset="accuracy")
            for row in judged.itertuples():
                print(f"{label}, seed {seed}, round {row.round}: accuracy {row.accuracy:.3f}", file=sys.stderr)
            rows.append({"method": label, "seed": seed, "accuracy": result.summary["accuracy"]})
    return pd.DataFrame(rows)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over the seeds, the methods in the order in which they were run."""
    return results.groupby("method", sort=False)["accuracy"].agg(["mean", "std"]).round(3)


if __name__ == "__main__":
    print(table(compare(METHODS, seeds=(0, 1), settings=SETTINGS, folder="runs/loop")))
