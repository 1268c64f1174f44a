"""Graph networks: GIN, GraphSAGE, and FedStar's GIN with a structural channel.

Each is the body of a ``Classifier`` and maps a ``GraphBatch`` of B graphs to features [B, hidden]. Messages are passed
and graphs are pooled by PyTorch Geometric. The layers are built on its ``MessagePassing`` and not taken from its
``GINConv``, ``SAGEConv`` and ``GCNConv``, whose outputs they equal (tested): these draw their initial values twice,
and GIN's ε would be a buffer that is sent and averaged. Importing PyG takes about two seconds of CPU time, once in each
process that builds one of these networks.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from raysim.workloads._torch_geometric import MessagePassing, global_add_pool
from raysim.workloads.graphs.batch import GraphBatch
from raysim.workloads.graphs.structural_encodings import structure_encodings
from raysim.workloads.models.dropout import GeneratorDropout


class Convolution(MessagePassing):  # type: ignore[misc]  # without types
    """A layer that passes messages, and leaves no file behind."""

    def __init__(self, aggr: str) -> None:
        # PyG writes a module of its own for each class to the temporary folder, and imports it from there.
        kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        super().__init__(aggr=aggr)
        sys.dont_write_bytecode = kept
        written = Path(str(sys.modules[type(self).propagate.__module__].__file__))
        if written.parent == Path(tempfile.gettempdir()):
            written.unlink(missing_ok=True)


class GinConvolution(Convolution):
    """x_i ← MLP(x_i + Σ_{j→i} x_j), the MLP linear, ReLU, linear; Xu et al. 2019 (arXiv 1810.00826), Eq. 4.1, ε = 0."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__("sum")
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, hidden)

    def forward(self, values: Tensor, directed: Tensor) -> Tensor:
        inner: Tensor = self.first(values + self.propagate(directed, x=values))
        outer: Tensor = self.second(inner.relu())
        return outer


class SageConvolution(Convolution):
    """x_i ← W₁ mean_{j→i} x_j + b + W₂ x_i; Hamilton et al. 2017 (arXiv 1706.02216), mean aggregator.

    The mean over no neighbors is zero.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__("mean")
        self.neighbors = nn.Linear(inputs, hidden)
        self.own = nn.Linear(inputs, hidden, bias=False)

    def forward(self, values: Tensor, directed: Tensor) -> Tensor:
        result: Tensor = self.neighbors(self.propagate(directed, x=values)) + self.own(values)
        return result


class GcnConvolution(Convolution):
    """x ← D̂^-½ Â D̂^-½ x W + b, Â = A with one self-loop at every node; Kipf and Welling 2017 (arXiv 1609.02907)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__("sum")
        self.linear = nn.Linear(inputs, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        nn.init.xavier_uniform_(self.linear.weight)  # as in the original code and in PyTorch Geometric

    def forward(self, values: Tensor, directed: Tensor) -> Tensor:
        others = directed[:, directed[0] != directed[1]]
        degree = torch.bincount(others[1], minlength=len(values)) + 1
        scale = degree.to(values.dtype).rsqrt().unsqueeze(1)
        scaled = self.linear(values) * scale
        result: Tensor = (scaled + self.propagate(others, x=scaled)) * scale + self.bias
        return result


class GraphBody(nn.Module):
    """Linear layer on the node features, convolutions, sum over the nodes, linear layer with ReLU -> [B, hidden].

    ReLU and dropout follow every convolution; dropout follows the last ReLU too, so that the head is a plain linear
    layer. Only ``pre`` depends on the width of the node features.
    """

    task_specific = ("pre", "post")

    def __init__(
        self, width: int, hidden: int, layers: int, dropout: float, convolution: Callable[[int, int], nn.Module]
    ) -> None:
        super().__init__()
        # Before the input layer: initial values are drawn in this order.
        convolutions = [convolution(hidden, hidden) for _ in range(layers)]
        self.pre = nn.Linear(width, hidden)
        self.convolutions = nn.ModuleList(convolutions)
        self.post = nn.Linear(hidden, hidden)
        self.dropout = GeneratorDropout(dropout)

    def forward(self, batch: GraphBatch) -> Tensor:
        directed = batch.edge_index
        values: Tensor = self.pre(batch.x)
        for convolution in self.convolutions:
            values = self.dropout(convolution(values, directed).relu())
        result: Tensor = self.dropout(self.post(global_add_pool(values, batch.batch, batch.num_graphs)).relu())
        return result


class StructureChannel(nn.Module):
    """s₀ = linear(encodings), s_l = tanh(GCN(s_l−1)): layers + 1 states, each [N, hidden]. No node feature enters."""

    def __init__(self, hidden: int, layers: int, walk_steps: int, degrees: int) -> None:
        super().__init__()
        self.walk_steps = walk_steps
        self.degrees = degrees
        self.embedding = nn.Linear(walk_steps + degrees, hidden)
        self.convolutions = nn.ModuleList(GcnConvolution(hidden, hidden) for _ in range(layers))

    def forward(self, batch: GraphBatch, directed: Tensor) -> list[Tensor]:
        states: list[Tensor] = [self.embedding(structure_encodings(batch, self.walk_steps, self.degrees))]
        for convolution in self.convolutions:
            states.append(convolution(states[-1], directed).tanh())
        return states


class StructuralBody(nn.Module):
    """``GraphBody`` over GIN whose layer l reads [x_l ‖ s_l]; ``join`` reads [x ‖ s] behind the last one.

    The structural channel is ``structure``, and nothing else is named so: FedStar shares exactly ``body.structure.*``.
    """

    task_specific = ("pre", "join", "post")

    def __init__(self, width: int, hidden: int, layers: int, dropout: float, walk_steps: int, degrees: int) -> None:
        super().__init__()
        self.pre = nn.Linear(width, hidden)
        self.structure = StructureChannel(hidden, layers, walk_steps, degrees)
        self.convolutions = nn.ModuleList(GinConvolution(2 * hidden, hidden) for _ in range(layers))
        self.join = nn.Linear(2 * hidden, hidden)
        self.post = nn.Linear(hidden, hidden)
        self.dropout = GeneratorDropout(dropout)

    def forward(self, batch: GraphBatch) -> Tensor:
        directed = batch.edge_index
        states: list[Tensor] = self.structure(batch, directed)
        values: Tensor = self.pre(batch.x)
        for convolution, state in zip(self.convolutions, states[:-1], strict=True):
            values = self.dropout(convolution(torch.cat([values, state], dim=1), directed).relu())
        joined = self.join(torch.cat([values, states[-1]], dim=1))
        result: Tensor = self.dropout(self.post(global_add_pool(joined, batch.batch, batch.num_graphs)).relu())
        return result
