"""A graph network of one's own on molecules whose bonds have types: ``python examples/own_graphs.py``.

The same from the command line, where the class is named by its module:

python -m raysim.launch --method fedavg --workload tudataset --sets MUTAG --parts 4 --model examples.own_graphs:Net
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch_geometric.nn import GINEConv, global_add_pool

import raysim

if TYPE_CHECKING:
    from raysim.results.result import RunResult
    from raysim.workloads.federated_data import InputSpec


class Net(nn.Module):
    """As written for PyTorch Geometric; it is told how wide its inputs are."""

    def __init__(self, inputs: InputSpec, hidden: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Linear(inputs.input_shape[0], hidden)
        self.convolutions = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)), edge_dim=bonds)
            for bonds in [inputs.edge_width] * layers
        )
        self.head = nn.Linear(hidden, inputs.classes)

    def forward(self, batch: Any) -> torch.Tensor:
        """Scores of the classes [B, classes], for a batch of B graphs."""
        x = self.embedding(batch.x)
        for convolution in self.convolutions:
            x = convolution(x, batch.edge_index, batch.edge_attr).relu()
        scores: torch.Tensor = self.head(global_add_pool(x, batch.batch, batch.num_graphs))
        return scores


def main(**options: Any) -> RunResult:
    """Train on the 188 molecules of MUTAG, cut over four clients; the run is told where they are, or downloads them."""
    settings: dict[str, Any] = {"workload": "tudataset", "sets": ("MUTAG",), "parts": 4, "rounds": 20} | options
    return raysim.run("fedavg", model=Net, **settings)


if __name__ == "__main__":
    result = main(progress=True, download=True)
    print(result.rounds[["round", "accuracy", "loss"]].tail(3))
