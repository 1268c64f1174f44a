"""Graphs of a user's own, and a network for them that is written for PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, global_add_pool


def graph(label: int, nodes: int = 5, width: int = 3, **more: Any) -> Data:
    """A ring of nodes (class 0) or a star (class 1), with random features."""
    others = torch.arange(1, nodes)
    edges = torch.stack([torch.zeros_like(others), others]) if label else torch.stack([others - 1, others])
    generator = torch.Generator().manual_seed(100 * nodes + label)
    x = torch.rand(nodes, width, generator=generator)
    return Data(**({"x": x, "edge_index": torch.cat([edges, edges.flip(0)], 1), "y": torch.tensor([label])} | more))


def graphs(count: int, width: int = 3) -> list[Data]:
    return [graph(number % 2, 4 + number % 5, width) for number in range(count)]


class Net(nn.Module):
    """As written for PyTorch Geometric."""

    def __init__(self, width: int = 3, classes: int = 2) -> None:
        super().__init__()
        self.convolution = GINConv(nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 8)))
        self.head = nn.Linear(8, classes)

    def forward(self, batch: Any) -> torch.Tensor:
        values = self.convolution(batch.x, batch.edge_index).relu()
        result: torch.Tensor = self.head(global_add_pool(values, batch.batch, batch.num_graphs))
        return result
