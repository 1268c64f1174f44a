"""FedTAD's distillation on the server: a generator of pseudo graphs, and GCNs of two layers as plain tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

NOISE, LAYERS = 32, (64, 128, 256)
"""Width of the noise, and of the generator's layers."""


@dataclass(frozen=True)
class Gcns:
    """K GCNs of two layers, stacked: Â (relu(Â X W₁ᵀ + b₁)) W₂ᵀ + b₂."""

    first_bias: Tensor
    """b₁ [K, h]."""
    first: Tensor
    """W₁ [K, h, F]."""
    second: Tensor
    """W₂ [K, C, h]."""
    second_bias: Tensor
    """b₂ [K, C]."""

    @classmethod
    def of(cls, vectors: Tensor, hidden: int, width: int, classes: int) -> Gcns:
        """Networks whose parameters are the rows of ``vectors`` [K, d], in the order in which they are shared."""
        parts = vectors.split([hidden, hidden * width, classes * hidden, classes], dim=1)
        return cls(parts[0], parts[1].view(-1, hidden, width), parts[2].view(-1, classes, hidden), parts[3])

    def logits(self, spread: Tensor, x: Tensor) -> Tensor:
        """Logits [K, n, C] of n nodes with features [n, F] and Â [n, n]."""
        features = (spread @ linear(x, self.first.flatten(0, 1))).view(len(x), *self.first.shape[:2]).transpose(0, 1)
        hidden = (features + self.first_bias[:, None]).relu()
        return spread @ (hidden @ self.second.transpose(1, 2)) + self.second_bias[:, None]


def shapes(width: int, classes: int) -> list[tuple[int, ...]]:
    """Shapes of the generator's tensors: an embedding of classes, then weight and bias of each layer."""
    widths = (NOISE + classes, *LAYERS, width)
    return [(classes, classes), *(shape for one, other in pairwise(widths) for shape in ((other, one), (other,)))]


def first_values(width: int, classes: int, draws: torch.Generator) -> Tensor:
    """The generator's values before any step [g]: N(0, 1) for the embedding, U(−1/√in, 1/√in) for the layers."""
    embedding, *layers = shapes(width, classes)
    pieces = [torch.randn(embedding, generator=draws).flatten()]
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        bound = 1 / math.sqrt(weight[1])
        pieces += [(2 * torch.rand(math.prod(shape), generator=draws) - 1) * bound for shape in (weight, bias)]
    return torch.cat(pieces)


def generated(values: Tensor, noise: Tensor, labels: Tensor, width: int, classes: int) -> Tensor:
    """Features [n, F] of nodes with noise [n, 32] and labels [n]: tanh layers on [embedding of the label ‖ noise]."""
    wanted = shapes(width, classes)
    pieces = values.split([math.prod(shape) for shape in wanted])
    embedding, *layers = (piece.view(shape) for piece, shape in zip(pieces, wanted, strict=True))
    found = torch.cat([embedding[labels], noise], dim=1)
    for number in range(0, len(layers), 2):
        found = linear(found, layers[number], layers[number + 1])
        found = found.tanh() if number < len(layers) - 2 else found
    return found


def spreading(features: Tensor, neighbors: int) -> Tensor:
    """Â [n, n] of the graph that joins each node with the ``neighbors`` of the largest cosine; no gradient."""
    with torch.no_grad():
        unit = torch.nn.functional.normalize(features, dim=1)
        nearest = (unit @ unit.T).topk(min(neighbors, len(features)), dim=1).indices
        joined = torch.zeros(len(features), len(features)).scatter_(1, nearest, 1.0)
        joined = ((joined + joined.T) > 0).float().fill_diagonal_(1.0)
        roots = joined.sum(1).rsqrt()
        return roots[:, None] * joined * roots[None]


def class_weights(reliability: Tensor, labels: Tensor) -> Tensor:
    """Weights [K, n] with which Σ is Σ_k Σ_c Φ_kc mean over nodes of class c, of Φ [K, C] and labels [n]."""
    counts = labels.bincount(minlength=reliability.shape[1])
    return reliability[:, labels] / counts[labels]


def disagreement(one: Tensor, others: Tensor, weights: Tensor) -> Tensor:
    """Σ_k Σ_c Φ_kc mean |f − f_k| of logits [1, n, C] and [K, n, C]."""
    return (weights * (one - others).abs().mean(2)).sum()


def semantics(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Σ_k Σ_c Φ_kc mean cross-entropy of class c."""
    losses = cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)), reduction="none")
    return (weights * losses.view(weights.shape)).sum()


def alikeness(noise: Tensor, features: Tensor) -> Tensor:
    """exp(−mean_ij mean (z_i − z_j)² · mean |x_i − x_j|): large where different noise gives the same nodes."""
    apart = (noise[:, None] - noise[None]).square().mean(2)
    found: Tensor = torch.exp(-(apart * torch.cdist(features, features, p=1.0) / features.shape[1]).mean())
    return found


def balanced(count: int, classes: int) -> Tensor:
    """Labels [count] in ascending order: ⌊count / C⌋ of each class, the rest of the last."""
    sizes = [count // classes] * classes
    sizes[-1] += count - sum(sizes)
    return torch.arange(classes).repeat_interleave(torch.tensor(sizes))


def sizes_of(found: Sequence[tuple[int, ...]]) -> tuple[int, int, int]:
    """Hidden width, features and classes of a GCN's shared shapes (b₁, W₁, W₂, b₂)."""
    return found[1][0], found[1][1], found[2][0]


@dataclass(frozen=True)
class Distillation:
    """The steps of FedTAD's server: of a generator, and of a model that learns from K others on what it makes."""

    teachers: Gcns
    weights: Tensor
    """Weights of the teachers for each node [K, n]: Φ of its class over the nodes of the class."""
    labels: Tensor
    """Classes of the generated nodes [n]."""
    sizes: tuple[int, int, int]
    """Hidden width, features and classes of the models."""
    neighbors: int

    def graph(self, generator: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Features [n, F] and Â [n, n] that a generator of values [g] makes of noise [n, 32]."""
        _, width, classes = self.sizes
        x = generated(generator, noise, self.labels, width, classes)
        return x, spreading(x, self.neighbors)

    def generator_loss(
        self, generator: Tensor, model: Tensor, noise: Tensor, semantic: float, diverse: float
    ) -> Tensor:
        """λ₁ semantics − disagreement of the model [d] with its teachers + λ₂ K alikeness."""
        x, spread = self.graph(generator, noise)
        known = self.teachers.logits(spread, x)
        student = Gcns.of(model[None], *self.sizes).logits(spread, x)
        loss = semantic * semantics(known, self.labels, self.weights)
        loss = loss - disagreement(student, known.detach(), self.weights)
        return loss + diverse * len(known) * alikeness(noise, x)

    def model_loss(self, model: Tensor, graph: tuple[Tensor, Tensor], known: Tensor) -> Tensor:
        """Disagreement of the model [d] with the logits [K, n, C] of its teachers."""
        x, spread = graph
        return disagreement(Gcns.of(model[None], *self.sizes).logits(spread, x), known, self.weights)
