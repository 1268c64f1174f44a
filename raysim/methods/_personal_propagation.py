"""AdaFGL's networks of a client's own: a graph mended by predictions, and what is computed on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, normalize, one_hot, prelu

from raysim.errors import ConfigError
from raysim.methods._node_graphs import spread_labels
from raysim.workloads.graphs.node_batch import NodeBatch, Subgraph
from raysim.workloads.models.classifier import task_specific
from raysim.workloads.models.dropout import GeneratorDropout
from raysim.workloads.objective import CLASSIFICATION, Objective

SLOPE = 0.25
"""First slope of PReLU below zero, as torch has it."""
SMALL = 1e-12
"""Least divisor, and least probability of which a logarithm is taken."""
TIE = 1e-5
"""Relative difference of sums of labels up to which it may be rounding."""


@dataclass(frozen=True)
class Settings:
    """The options of AdaFGL that a client's networks have."""

    hops: int
    width: int
    dropout: float
    alpha: float
    beta: float
    alike: float


@dataclass(frozen=True, eq=False)
class Guide:
    """Facts that the extractor says of a client's graph, the same in all steps of its training."""

    predicted: Tensor
    """P̂, its probabilities [n, C]."""
    alike: Tensor
    """B, 1 where two nodes' probabilities are alike [n, n]."""
    spreading: Tensor
    """P̃ [n, n]."""

    @classmethod
    def of(cls, predicted: Tensor, edges: Tensor, alpha: float, least: float) -> Guide:
        """P̃ = D^{-1/2} (α A + (1 − α) B + I) D^{-1/2} with D the row sums between, B = 1[cos(P̂_u, P̂_v) > least].

        Args:
            predicted: P̂ [n, C].
            edges: both directions of every edge [2, 2E].
        """
        alike = (cosines(predicted) > least).to(predicted.dtype)
        joined = (1 - alpha) * alike
        joined[edges[0], edges[1]] += alpha
        joined.diagonal().add_(1.0)
        roots = joined.sum(1).rsqrt()
        return cls(predicted, alike, roots[:, None] * joined * roots[None])


def cosines(predicted: Tensor) -> Tensor:
    """Cosines of the probabilities [n, C] of every two nodes [n, n], and 0 of a node and itself."""
    unit = normalize(predicted, dim=1)
    found = unit @ unit.T
    return found - found.diagonal().diag()


def homophily(spread: Callable[[Tensor], Tensor], start: Tensor, steps: int, hidden: Tensor, labels: Tensor) -> float:
    """The share of nodes to which their own label spreads, and no other as much.

    Args:
        spread: multiplies [n, C] by Â.
        start: Y⁰ [n, C].
        hidden: the nodes that are looked at [m].
        labels: their labels [m].
    """
    found = spread_labels(spread, start, steps, 0.5)[hidden]
    own = found.gather(1, labels[:, None]).flatten()
    others = found.scatter(1, labels[:, None], -torch.inf).max(1).values
    return int((own > (1 + TIE) * others).sum()) / len(hidden)


def first_labels(size: int, classes: int, nodes: Tensor, labels: Tensor) -> Tensor:
    """Y⁰ [n, C]: the label of each of ``nodes``, and of any other node every class alike."""
    values = torch.full((size, classes), 1 / classes, device=labels.device)
    values[nodes] = one_hot(labels, classes).to(values.dtype)
    return values


class Network(nn.Module):
    """Logits of all nodes by a perceptron on [X ‖ P̃X ‖ … ‖ P̃ᴷX], with PReLU and dropout between its layers.

    The first layer is X W₀ + P̃ (X W₁ + P̃ (…)): the wide matrix of all hops is never made, and products with X skip its
    zeros. ``first`` is [W₀ ‖ W₁ ‖ …] by features [F, (K + 1) · width], so that neither pass has to transpose it.
    """

    def __init__(self, hops: int, features: int, width: int, classes: int, layers: int, dropout: float) -> None:
        super().__init__()
        bound = math.sqrt(2) * math.sqrt(6 / ((hops + 1) * features + width))
        self.first = nn.Parameter(torch.empty(features, (hops + 1) * width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(width))
        self.slope = nn.Parameter(torch.full((1,), SLOPE))
        self.layers = nn.ModuleList(nn.Linear(width, other) for other in [width] * (layers - 2) + [classes])
        self.dropout = GeneratorDropout(dropout)
        layer: Any
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight, gain=math.sqrt(2))
            nn.init.zeros_(layer.bias)

    def forward(self, graph: Subgraph, spreading: Tensor) -> Tensor:
        values: Tensor
        *before, values = graph.times(self.first.T).split(len(self.bias), dim=1)
        for hop in reversed(before):
            values = hop + spreading @ values
        values = values + self.bias
        for layer in self.layers:
            values = layer(self.dropout(prelu(values, self.slope)))
        return values


class PersonalNetworks(nn.Module):
    """The four networks of a client, and its homophily confidence score."""

    def __init__(self, settings: Settings, features: int, classes: int) -> None:
        super().__init__()
        widths, hops, dropout = (features, settings.width, classes), settings.hops, settings.dropout
        self.beta = settings.beta
        self.homophilous = Network(hops, *widths, 2, dropout)
        self.of_features = Network(0, *widths, 3, dropout)
        self.of_hops = Network(hops, *widths, 3, dropout)
        self.of_messages = Network(hops, *widths, 3, dropout)
        self.register_buffer("score", torch.tensor(-1.0))

    @property
    def weight(self) -> float:
        """HCS, the weight of the homophilous part; −1 before a client personalizes."""
        score: Any = self.score
        return float(score)

    @property
    def parts(self) -> tuple[str, ...]:
        """How names of parameters begin whose networks do not weigh 0."""
        near = ("homophilous",) if self.weight > 0 else ()
        far = ("of_features", "of_hops", "of_messages") if self.weight < 1 else ()
        return tuple(f"personal.{name}." for name in (*near, *far))

    def predicted(self, graph: Subgraph, guide: Guide) -> Tensor:
        """Ŷ [n, C]."""
        found = torch.zeros_like(guide.predicted)
        if self.weight > 0:
            near = self.homophilous(graph, guide.spreading).softmax(1)
            found = found + self.weight * (guide.predicted + near) / 2
        if self.weight < 1:
            far = [logits.softmax(1) for logits in self.heterophilous(graph, guide)]
            found = found + (1 - self.weight) * torch.stack(far).sum(0) / 3
        return found

    def loss(self, batch: NodeBatch, guide: Guide, labels: Tensor, objective: Objective = CLASSIFICATION) -> Tensor:
        """The sum of the losses of the networks whose weight is not 0."""
        loss = torch.zeros((), device=labels.device)
        if self.weight > 0:
            logits = self.homophilous(batch.graph, guide.spreading)
            loss = loss + objective.mean_loss(batch.of(logits), labels) + mse_loss(logits, guide.predicted)
        if self.weight < 1:
            for logits in self.heterophilous(batch.graph, guide):
                loss = loss + objective.mean_loss(batch.of(logits), labels)
        return loss

    def heterophilous(self, graph: Subgraph, guide: Guide) -> Iterator[Tensor]:
        """F, S and M [n, C]."""
        yield self.of_features(graph, guide.spreading)
        yield self.of_hops(graph, guide.spreading)
        logits = self.of_messages(graph, guide.spreading)
        related = self.beta * guide.alike + (1 - self.beta) * cosines(logits.softmax(1))
        yield with_messages(logits, signs(related), self.of_messages.slope)


def signs(related: Tensor) -> Tensor:
    """Signs of messages [n, n] between −1 and 1, and 1 of a node to itself, from R [n, n] with 0 on its diagonal.

    Above the mean μ of R it is (R − μ) / (max R − μ), else −R / μ.
    """
    mean = related.mean()
    above = (related - mean) / (related.max() - mean).clamp(min=SMALL)
    found = torch.where(related > mean, above, -related / mean.clamp(min=SMALL))
    return found + torch.eye(len(related), dtype=related.dtype, device=related.device)


def with_messages(logits: Tensor, signed: Tensor, slope: Tensor) -> Tensor:
    """(softmax(PReLU(S) M⁰) − softmax(PReLU(−S) M⁰) + M⁰) / 2 [n, C] of logits M⁰ [n, C] and signs S [n, n]."""
    received, rejected = ((prelu(each, slope) @ logits).softmax(1) for each in (signed, -signed))
    return (received - rejected + logits) / 2


class Personalized(nn.Module):
    """head(body(x)), the extractor; once a client has a score, the logarithms of what its own networks predict."""

    def __init__(self, module: Any, settings: Settings) -> None:
        super().__init__()
        width = getattr(getattr(module, "body", None), "width", None)
        if not isinstance(width, int):
            raise ConfigError(
                "method adafgl adds networks that read the features of nodes, and the model does not say how many "
                "there are. Take --model gcn, gat, sage, sgc or gamlp, or give the body of your own an attribute "
                "width: the number of features of a node."
            )
        self.body, self.head = module.body, module.head
        self.personal = PersonalNetworks(settings, width, module.head.out_features)
        self.alpha, self.alike = settings.alpha, settings.alike
        self.task_specific = (*task_specific(module), "personal")

    def forward(self, batch: NodeBatch) -> Tensor:
        if self.personal.weight < 0:
            return self._extracted(batch)
        predicted = self.personal.predicted(batch.graph, self.guide(batch.graph))
        return batch.of(predicted).clamp(min=SMALL).log()

    def guide(self, graph: Subgraph) -> Guide:
        """The extractor's outputs on a graph, in evaluation mode and without a gradient."""
        modes = [(part, part.training) for part in (*self.body.modules(), *self.head.modules())]
        for part, _ in modes:
            part.training = False
        with torch.no_grad():
            every = NodeBatch(graph, torch.arange(graph.num_nodes, device=graph.x.device))
            predicted = self._extracted(every).softmax(1)
            found = Guide.of(predicted, graph.edge_index, self.alpha, self.alike)
        for part, mode in modes:
            part.training = mode
        return found

    def _extracted(self, batch: NodeBatch) -> Tensor:
        logits: Tensor = self.head(self.body(batch))
        return logits.float()
