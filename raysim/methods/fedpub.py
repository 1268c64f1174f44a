"""FED-PUB: clients whose models do the same to a random graph share more, and each masks what it receives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim import seeds
from raysim.method import (
    NOTHING,
    ClientTask,
    Context,
    FlatModel,
    Message,
    Module,
    Tensor,
    Traits,
    Update,
    Updates,
    Vector,
)
from raysim.methods._model_for_each import COMPARES, ModelForEach, Server
from raysim.methods._node_graphs import training_nodes
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative, PositiveInt, Share

if TYPE_CHECKING:
    from raysim.workloads.graphs.node_batch import NodeBatch

COMMUNITY, INSIDE = 100, 0.1
"""Nodes of a community of the proxy graph, and the probability of an edge between two of them."""


@dataclass(frozen=True)
class Kept:
    """Client state: the model that a client's last task made."""

    masks: Vector
    """Masks, and buffers that stay."""
    trained: Vector
    """Shared entries [d]; empty before the first task."""


def _extra_bytes(sizes: Sizes) -> ExtraBytes:
    return ExtraBytes(up=4 * sizes.features)


@dataclass(frozen=True)
class FedPUB(ModelForEach[Kept]):
    """FED-PUB: personalized mixtures of models by functional similarity, under masks of each client's own.

    Source: Baek et al. 2023, Personalized subgraph federated learning (ICML; arXiv 2206.10206), and the authors' code.
    Every weight matrix W of the model becomes W ⊙ μ_i, with a mask μ_i that client i keeps; it starts at one. From the
    received θ̄_i the client minimizes, from its second round on,

        CE(f(G_i; θ_i ⊙ μ_i)) + λ₁ ‖μ_i‖₁ + λ₂ ‖θ_i − θ̄_i‖²,

    and before without λ₂'s term. Entries of μ below ``prune`` count as 0 when it is judged. It returns θ_i and the mean
    h̃_i of the body's features over the nodes of a random graph, the same for all clients. The server sends

        θ̄_i = Σ_j α_ij θ_j,   α_ij = exp(τ cos(h̃_i, h̃_j)) / Σ_k exp(τ cos(h̃_i, h̃_k)).

    Decided here: the random graph (``proxies`` communities of 100 nodes, edges inside with probability 0.1, features
    N(0, 1)) follows from the run's seed and is not sent. h̃ are the body's features, with its last ReLU; in the code the
    values before it. A client is judged by the model that its last task made, as in the code; before its first by what
    it receives. The code adds both penalties to detached values, so that they have no gradient: ``sparsity 0 proximal
    0`` is what it computes.
    """

    sparsity: Annotated[NonNegative, Help("λ1 of the masks' absolute values", "Baek et al. 2023 (code)")] = 1e-3
    proximal: Annotated[NonNegative, Help("λ2 of the distance to the received model", "Baek et al. 2023 (code)")] = 1e-3
    prune: Annotated[NonNegative, Help("masks smaller than this count as 0 at test", "Baek et al. 2023 (code)")] = 1e-3
    scale: Annotated[NonNegative, Help("τ of the similarities", "Baek et al. 2023 (code): 3 on Cora")] = 3.0
    proxies: Annotated[PositiveInt, Help("communities of the random graph", "Baek et al. 2023 (code)")] = 5
    density: Annotated[Share, Help("probability of an edge within a community", "Baek et al. 2023 (code)")] = INSIDE

    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "nodes"}
    traits: ClassVar[Traits] = Traits(
        personal=True,
        judged_apart=True,  # by what it trained itself
        same_task=True,
        node_graphs=True,
        model_parts=("body.", "head."),
        head_of_body=True,
        extra_bytes=_extra_bytes,
        reports=("own_weight", "pruned"),
        needs_several=COMPARES,
    )

    def extend(self, module: Module) -> Module:
        return masked(module, self.prune)

    def shared_names(self, module: Module) -> Collection[str]:
        return {name for name in super().shared_names(module) if not is_mask(name)}

    def init_client(self, model: FlatModel) -> Kept:
        return Kept(model.take_private(), NOTHING)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Kept, task: ClientTask
    ) -> tuple[Update, Kept]:
        from raysim.training.local_sgd import train_epochs

        model.load_shared(message.parameters)
        model.load_private(state.masks)
        anchor = model.shared_parameters.clone()
        pulls = self.proximal if state.trained.size else 0.0

        def add_penalties(model: FlatModel) -> None:
            model.shared_gradient.add_(model.shared_parameters - anchor, alpha=2 * pulls)
            for name, parameter in model.module.named_parameters():
                if is_mask(name) and parameter.grad is not None:
                    parameter.grad.add_(parameter.detach().sign(), alpha=self.sparsity)

        trained = train_epochs(model, data.train, task, add_gradient=add_penalties)
        extra = {"embedding": self.embedding(model, data, task.seed)}
        masks = [value.detach() for name, value in model.module.named_parameters() if is_mask(name)]
        pruned = sum(int((mask.abs() < self.prune).sum()) for mask in masks) / sum(mask.numel() for mask in masks)
        update = Update(model.change_from(message.parameters), trained.metrics() | {"pruned": pruned}, extra)
        return update, Kept(model.take_private(), model.take_shared())

    def deploy(self, model: FlatModel, message: Message, state: Kept) -> None:
        model.load_shared(state.trained if state.trained.size else message.parameters)
        model.load_private(state.masks)

    def embedding(self, model: FlatModel, data: ClientData, seed: int) -> Vector:
        """h̃ [h] of the model as it is."""
        import torch

        batch, _ = training_nodes(data)
        proxy = proxy_graph(batch.x.shape[1], self.proxies, self.density, seeds.root(seed, "training"), model.device)
        module: Any = model.module
        module.eval()
        with torch.no_grad():
            features: Tensor = module.features(proxy)
        return features.mean(0).cpu().numpy().astype(np.float32)

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        embeddings = np.stack([update.extra["embedding"] for update in updates.each]).astype(np.float64)
        weights = self.weights(embeddings)
        context.report.round("own_weight", float(np.diag(weights).mean()))
        context.report.round("pruned", float(updates.metric("pruned").mean()))
        return self.mixed(server, updates, weights)

    def weights(self, embeddings: NDArray[np.float64]) -> NDArray[np.float64]:
        """α [n, n] of h̃ [n, h]."""
        lengths = np.maximum(np.linalg.norm(embeddings, axis=1), 1e-12)
        scores = self.scale * (embeddings @ embeddings.T / np.outer(lengths, lengths))
        powers = np.exp(scores - scores.max(1, keepdims=True))
        found: NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
        return found


def is_mask(name: str) -> bool:
    """Whether a parameter is a mask."""
    return name.startswith("masks.")


def masked(module: Any, prune: float) -> Module:
    """The model head(body(x)) with a mask of ones on each of its weight matrices."""
    import torch

    class Masked(torch.nn.Module):
        """head(body(x)) under W ⊙ μ; in evaluation entries of μ smaller than ``prune`` count as 0."""

        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = module.body, module.head
            matrices = {name: weight for name, weight in module.named_parameters() if weight.ndim >= 2}
            self.masks = torch.nn.ParameterDict(
                {name.replace(".", "-"): torch.ones_like(weight) for name, weight in matrices.items()}
            )

        def features(self, x: Any) -> Tensor:
            return self._called("body", x)

        def forward(self, x: Any) -> Tensor:
            return self._called("head", self._called("body", x))

        def _called(self, part: str, x: Any) -> Tensor:
            own = getattr(self, part)
            values = {
                name: weight * self._mask(f"{part}.{name}")
                for name, weight in own.named_parameters()
                if weight.ndim >= 2
            }
            found: Tensor = torch.func.functional_call(own, values, (x,))
            return found

        def _mask(self, name: str) -> Tensor:
            mask: Tensor = self.masks[name.replace(".", "-")]
            return mask if self.training else mask * (mask.abs() >= prune)

    return Masked()


@lru_cache(maxsize=2)
def proxy_graph(width: int, communities: int, density: float, seed: int, device: str) -> NodeBatch:
    """All nodes of the random graph of a run: communities without edges between them. A function of its arguments."""
    import torch

    from raysim.workloads.graphs.node_batch import NodeBatch, Subgraph

    draws = seeds.torch_generator(seed, "proxy graph", 0, 0)
    nodes = communities * COMMUNITY
    x = torch.randn(nodes, width, generator=draws)
    community = torch.arange(nodes) // COMMUNITY
    drawn = torch.rand(nodes, nodes, generator=draws) < density
    pairs = (drawn & (community[:, None] == community[None])).triu(1).nonzero().T
    graph = Subgraph(x.to(device), torch.cat([pairs, pairs.flip(0)], dim=1).to(device))
    return NodeBatch(graph, torch.arange(nodes, device=device))


METHOD = FedPUB
