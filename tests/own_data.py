"""A user's own data and model, as a script or a notebook has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

QUICK: dict[str, Any] = {
    "rounds": 3,
    "local_epochs": 1,
    "pictures": False,
    "engine": {"backend": "inline", "checkpoint_every": 1},
}


class Net(torch.nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.body = torch.nn.Linear(4, width)
        self.head = torch.nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(torch.relu(self.body(x)))
        return scores


def seeded(seed: int = 0) -> Net:
    """A module with initial values of its own."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Net()


def samples(count: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs [count, 4] and labels 0 to 2."""
    x = np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0)


def three_clients() -> list[tuple[np.ndarray, np.ndarray]]:
    return [samples(count, seed) for seed, count in enumerate((40, 20, 30))]


class Items(torch.utils.data.Dataset[tuple[Any, Any]]):
    """A map-style Dataset of a pair of arrays."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return torch.tensor(self.x[index]), int(self.y[index])
