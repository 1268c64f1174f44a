"""Federated training of your own data and module, in ten lines: ``python examples/own_data.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer

import raysim

if TYPE_CHECKING:
    from raysim.results.result import RunResult


class Net(torch.nn.Module):
    """Any module will do; it lives in this file alone."""

    def __init__(self, features: int = 30, classes: int = 2) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(features, 32), torch.nn.ReLU(), torch.nn.Linear(32, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes [B, 2], for the inputs of B samples."""
        scores: torch.Tensor = self.layers(x)
        return scores


def main(**options: Any) -> RunResult:
    """Train on the cells of 469 patients, cut over ten clients, and test on 100 others."""
    data = load_breast_cancer()
    x, y = data.data, data.target
    x = ((x - x[100:].mean(0)) / x[100:].std(0)).astype(np.float32)
    clients = raysim.split((x[100:], y[100:]), clients=10, partition="dirichlet", alpha=0.3)
    torch.manual_seed(0)  # a module's initial values are its own
    settings = {"mu": 0.1, "rounds": 20} | options
    return raysim.run("fedprox", model=Net(), clients=clients, test=(x[:100], y[:100]), **settings)


if __name__ == "__main__":
    result = main(progress=True)
    print(result.rounds[["round", "accuracy", "loss"]].tail(3))
    print(f"the trained {type(result.model).__name__} and the tables are in {result.folder}")
