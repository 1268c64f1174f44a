"""The problem of every program: three clients of different sizes, and a network with its first values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

SIZES = (24, 16, 8)
"""Samples of each client."""
WIDTH, HIDDEN, CLASSES = 8, 6, 3
BATCH = 8
"""Samples of a mini-batch; some cases have another."""
ROUNDS, EPOCHS, RATE = 3, 2, 0.1

Values = Mapping[str, Tensor]
"""Results of a program: "server" or "client k" → the values of a model in one vector; "predictions k" → how many of
:func:`points` the model that client k is judged by takes for each class [3]."""


def clients() -> list[tuple[Tensor, Tensor]]:
    """Inputs [m, 8] and labels [m] of each client; labels are skewed, and the last client lacks a class."""
    generator = torch.Generator().manual_seed(7)
    centers = 2 * torch.randn(CLASSES, WIDTH, generator=generator)
    shares = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.5, 0.5, 0.0]])
    found = []
    for share, size in zip(shares, SIZES, strict=True):
        labels = torch.multinomial(share, size, replacement=True, generator=generator)
        found.append((centers[labels] + torch.randn(size, WIDTH, generator=generator), labels))
    return found


def points() -> Tensor:
    """Inputs [1000, 8] that no client has, many of them between the classes."""
    return 2 * torch.randn(1000, WIDTH, generator=torch.Generator().manual_seed(11))


class Network(nn.Module):
    """head(body(x)), with BatchNorm between the layers of the body if it is asked for."""

    def __init__(self, batch_norm: bool = False) -> None:
        super().__init__()
        between: list[nn.Module] = [nn.BatchNorm1d(HIDDEN)] if batch_norm else []
        self.body = nn.Sequential(nn.Linear(WIDTH, HIDDEN), *between, nn.ReLU())
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x))
        return logits


def network(batch_norm: bool = False) -> Network:
    """The network with the same first values at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Network(batch_norm)


def batches(client: int) -> list[tuple[Tensor, Tensor]]:
    """The mini-batches of a client in the order of its samples."""
    inputs, labels = clients()[client]
    return list(zip(inputs.split(BATCH), labels.split(BATCH), strict=True))


def vector(tensors: Iterable[Tensor]) -> Tensor:
    """All values in one vector."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def in_order(count: int, **options: Any) -> Tensor:
    return torch.arange(count)


@contextmanager
def unshuffled() -> Iterator[None]:
    """Mini-batches of every epoch in the order of the samples, in raysim as in the other programs."""
    with mock.patch("torch.randperm", in_order):
        yield
