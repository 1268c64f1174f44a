"""FedTAD: the server distills into the averaged GCN what each client knows reliably, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from raysim import seeds
from raysim.errors import ConfigError
from raysim.method import (
    NOTHING,
    ClientTask,
    Context,
    FlatModel,
    Message,
    Tensor,
    Traits,
    Update,
    Updates,
    Vector,
    WholeModel,
)
from raysim.methods._node_graphs import training_nodes
from raysim.traits import ExtraBytes, Sizes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegative, NonNegativeInt, Positive, PositiveInt

if TYPE_CHECKING:
    from raysim.workloads.graphs.node_batch import Subgraph

NAMES = ("body.convolutions.0.bias", "body.convolutions.0.lin.weight", "head.weight", "head.bias")
"""Parameters of a GCN of two layers, as they are shared."""


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """The global GCN [d]."""
    generator: Vector
    """Values of the generator; empty before the first step."""
    optimizers: dict[str, dict[str, Any]]
    """Moments of Adam, of the generator and of the distilled model."""


def extra_bytes(sizes: Sizes) -> ExtraBytes:
    """Φ_k, a number for each class."""
    return ExtraBytes(up=4 * sizes.classes)


@dataclass(frozen=True)
class FedTAD(WholeModel[Server, Vector]):
    """FedTAD: FedAvg, then data-free distillation of the clients' models on generated graphs, weighed by reliability.

    Source: Zhu et al. 2024, FedTAD: Topology-aware data-free knowledge distillation for subgraph federated learning
    (IJCAI; arXiv 2404.14061), and the authors' code. A client k sends its model f_k and, for every class c,

        Φ_kc = Σ_{v ∈ train, y_v = c} (1 + Σ_{u ∈ N(v)} cos(φ_v, φ_u)) / (|N(v)| + 1),   φ_v = [x_v ‖ T_vv, …, (Tᵖ)_vv],

    T = D^{-1} A the random walk; the server divides by Σ_k Φ_kc. After the mean of the models, f, it repeats: noise
    z ∈ N(0, I₃₂) and balanced labels become node features X = G(z, c), and a graph that joins each node with the
    ``neighbors`` of the largest cosine. A step of Adam on G minimizes

        λ₁ Σ_kc Φ_kc CE_c(f_k) − Σ_kc Φ_kc mean_c |f − f_k| + λ₂ n exp(−mean_ij mean (z_i − z_j)² · mean |X_i − X_j|),

    then ``distillations`` steps of Adam on f minimize Σ_kc Φ_kc mean_c |f − f_k| on the graph of the new G.

    Decided here: the clients' mean is by training nodes (in the code by all nodes). φ has the return probabilities, as
    printed; the code appends the numbers of nodes that random walks visit, next to which features hardly count. The
    code leaves dropout on wherever it distills; here there is none. The model must be ``gcn`` with two layers.
    """

    epochs: Annotated[NonNegativeInt, Help("repetitions a round; 0: FedAvg", "Zhu et al. 2024 (code)")] = 5
    distillations: Annotated[PositiveInt, Help("steps of the global model in each", "Zhu et al. 2024 (code)")] = 5
    generator_rate: Annotated[Positive, Help("learning rate of the generator", "Zhu et al. 2024 (code)")] = 1e-3
    distillation_rate: Annotated[Positive, Help("learning rate of the global model", "Zhu et al. 2024 (code)")] = 1e-3
    decay: Annotated[NonNegative, Help("weight decay of both", "Zhu et al. 2024 (code)")] = 5e-4
    semantics: Annotated[NonNegative, Help("λ1 of the clients' cross-entropy", "Zhu et al. 2024 (code)")] = 1.0
    diversity: Annotated[NonNegative, Help("λ2 of the nodes' diversity", "Zhu et al. 2024 (code)")] = 1.0
    nodes: Annotated[PositiveInt, Help("nodes of a generated graph", "Zhu et al. 2024 (code)")] = 100
    neighbors: Annotated[PositiveInt, Help("neighbors of each, itself included", "Zhu et al. 2024 (code)")] = 5
    walk: Annotated[PositiveInt, Help("p, longest walk of the topological features", "Zhu et al. 2024 (code)")] = 5

    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "nodes", "model.name": "gcn"}
    traits: ClassVar[Traits] = Traits(
        same_task=True,
        classification=True,
        node_graphs=True,
        extra_bytes=extra_bytes,
        reports=("disagreement",),
        needs_several="which distills the models of several clients into one",
    )

    def init_server(self, model: FlatModel) -> Server:
        spreads = getattr(getattr(model.module, "body", None), "spreads", False)
        if tuple(entry.name for entry in model.entries) != NAMES or not spreads:
            raise ConfigError(
                "method fedtad distills into a GCN of two layers; set --model gcn --layers 2 --last convolution"
            )
        if frozen := next((entry.name for entry in model.entries if not entry.trained), ""):
            raise ConfigError(
                f"method fedtad trains the whole model on the server too, and {frozen} is frozen; let it be trained, "
                "requires_grad_(True), or take --method fedavg"
            )
        return Server(model.take_shared(), NOTHING, {})

    def init_client(self, model: FlatModel) -> Vector:
        return NOTHING

    def message(self, server: Server, client: int) -> Message:
        return Message(server.parameters)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.local_sgd import local_update

        if not state.size:
            batch, labels = training_nodes(data)
            state = reliability(batch.graph, batch.nodes, labels, task.classes, self.walk)
        update = local_update(model, data, message, task)
        return Update(update.delta, update.metrics, {"reliability": state}), state

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        mean = server.parameters + updates.mean()
        if not self.epochs:
            return Server(mean, server.generator, server.optimizers)
        bases = updates.bases or [server.parameters] * len(updates.clients)
        trained = np.stack([base + change for base, change in zip(bases, updates.changes, strict=True)])
        found = np.stack([update.extra["reliability"] for update in updates.each]).astype(np.float64)
        totals = found.sum(0)
        weights = np.divide(found, totals, out=np.zeros_like(found), where=totals != 0).astype(np.float32)
        return self.distilled(Server(mean, server.generator, server.optimizers), trained, weights, context)

    def distilled(self, server: Server, trained: Vector, reliability: Vector, context: Context) -> Server:
        """The state after distillation of the clients' models [K, d] by their Φ [K, C], divided by its sums."""
        import torch

        from raysim.methods import _node_generator as parts

        sizes = parts.sizes_of(context.shapes)
        new = not server.generator.size
        draws = seeds.torch_generator(context.seed, "fedtad generator", 0 if new else context.round)
        values = parts.first_values(*sizes[1:], draws).numpy() if new else server.generator
        generator, generator_steps = _trained(values, self.generator_rate, self.decay, server, "generator")
        model, model_steps = _trained(server.parameters, self.distillation_rate, self.decay, server, "model")
        labels = parts.balanced(self.nodes, sizes[2])
        teachers = parts.Gcns.of(torch.from_numpy(trained), *sizes)
        weights = parts.class_weights(torch.from_numpy(reliability), labels)
        distillation = parts.Distillation(teachers, weights, labels, sizes, self.neighbors)
        apart = torch.zeros(())
        for _ in range(self.epochs):
            noise = torch.randn(self.nodes, parts.NOISE, generator=draws)
            generator_steps.clear()
            distillation.generator_loss(generator, model.detach(), noise, self.semantics, self.diversity).backward()
            generator_steps.step()
            with torch.no_grad():
                graph = distillation.graph(generator, noise)
                known = teachers.logits(graph[1], graph[0])
            for _ in range(self.distillations):
                model_steps.clear()
                apart = distillation.model_loss(model, graph, known)
                apart.backward()
                model_steps.step()
        context.report.round("disagreement", float(apart.detach()))
        optimizers = {"generator": generator_steps.state(), "model": model_steps.state()}
        return Server(model.detach().numpy().copy(), generator.detach().numpy().copy(), optimizers)


def _trained(values: Vector, rate: float, decay: float, server: Server, name: str) -> tuple[Any, Any]:
    """A parameter with these values, and Adam on it with the moments that the server has of it."""
    import torch

    from raysim.training.optimizers import Adam

    parameter = torch.nn.Parameter(torch.from_numpy(values.copy()))
    parameter.grad = torch.zeros_like(parameter)
    optimizer = Adam([parameter], rate, decay, decoupled=False)
    optimizer.load(server.optimizers.get(name, {}))
    return parameter, optimizer


def reliability(graph: Subgraph, nodes: Tensor, labels: Tensor, classes: int, walk: int) -> Vector:
    """Φ_k [C] of a client's graph, its training nodes [B] and their labels [B]."""
    import torch

    first, second = graph.edge_index
    count = graph.num_nodes
    degrees = torch.bincount(first, minlength=count)
    step = torch.zeros(count, count, device=graph.x.device)
    step[first, second] = 1 / degrees[first]
    power, returns = torch.eye(count, device=graph.x.device), []
    for _ in range(walk):
        power = power @ step
        returns.append(power.diagonal())
    unit = torch.nn.functional.normalize(torch.cat([graph.x, torch.stack(returns, 1)], 1), dim=1)
    cosines = torch.zeros(count, device=graph.x.device)
    cosines.index_add_(0, first, (unit[first] * unit[second]).sum(1))
    known = ((1 + cosines) / (degrees + 1))[nodes]
    found = torch.zeros(classes, device=graph.x.device).index_add_(0, labels, known)
    return found.cpu().numpy().astype(np.float32)


METHOD = FedTAD
