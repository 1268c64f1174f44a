"""The networks of P3 and P4, written as a user would."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class CharacterLstm(nn.Module):
    """Characters [B, length] to scores of the next one [B, characters]: 8 dimensions, two layers of 256 units."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, 8)
        self.lstm = nn.LSTM(8, 256, 2, batch_first=True)
        self.head = nn.Linear(256, characters)

    def forward(self, inputs: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(inputs))
        scores: Tensor = self.head(states[:, -1])
        return scores


class Gin(nn.Module):
    """Graphs, a batch of PyTorch Geometric's or raysim's, to scores [B, classes]."""

    def __init__(self, width: int, classes: int, hidden: int = 64, layers: int = 3) -> None:
        from torch_geometric.nn import GINConv

        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.convolutions = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
            for _ in range(layers)
        )
        self.last = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, batch: Any) -> Tensor:
        from torch_geometric.nn import global_add_pool

        values = self.first(batch.x)
        for convolution in self.convolutions:
            values = convolution(values, batch.edge_index).relu()
        pooled = global_add_pool(values, batch.batch, batch.num_graphs)
        scores: Tensor = self.head(self.last(pooled).relu())
        return scores
