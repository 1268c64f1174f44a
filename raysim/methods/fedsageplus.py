"""FedSage+: clients mend their graphs by generated neighbors in the place of those that other clients have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.errors import ConfigError
from raysim.method import NOTHING, ClientTask, FlatModel, Message, Tensor, Traits, Update, Vector
from raysim.methods._halves import AveragedModel
from raysim.methods._node_graphs import training_nodes
from raysim.workloads.federated_data import ChangedSamples, ClientData, Samples
from raysim.workloads.option_types import Help, NonNegativeInt, Positive, PositiveInt, Share

if TYPE_CHECKING:
    from raysim.workloads.graphs.node_batch import Subgraph


@dataclass(frozen=True)
class Mended:
    """Client state: the neighbors that its generator has made."""

    centers: NDArray[np.int64]
    """The node that each is a neighbor of [k]."""
    features: Vector
    """Their features, one after another [k · F]."""
    made: int = 0
    """1 from the client's first task on."""


@dataclass(frozen=True)
class FedSagePlus(AveragedModel[Mended]):
    """FedSage+: FedAvg on graphs to which each client has added neighbors that a generator of its own makes.

    Source: Zhang et al. 2021, Subgraph federated learning with missing neighbor generation (NeurIPS; arXiv 2106.13430),
    and the authors' code. In its first task a client hides some nodes and trains a generator that finds, for a node v
    of what is left, the number of its missing neighbors n_v and their features x_v1 … (P at most), on its training
    nodes: it minimizes smooth L1(ñ_v, n_v), the cross-entropy of a classifier on the mended graph, and

        L^f = 1 / (B P) Σ_v Σ_{p ≤ ⌊ñ_v⌋} min_{k ≤ n_v} mean (x̂_vp − x_vk)²;

    then for as many epochs the generator alone minimizes the last two and, for each other client, L^f with P features
    that this one has shown in the place of x_v. On the client's whole graph the generator makes min(P, ⌊ñ_v⌋) neighbors
    of each node, which stay; all its tasks train, and it is judged, on the graph with these.

    Decided here: what other clients have (``workload.exchange samples``: 100 nodes that have neighbors, sent once) is
    drawn from anew in every epoch; in print gradients are exchanged, in the code neighbors of random nodes are looked
    up. The generator sees the whole graph when it mends, in evaluation mode; in the code the impaired one with dropout.
    The classifier beside it has no ReLU at its end. The federated model is the run's, ``sage`` on whole neighborhoods
    by default; in print GraphSAGE samples 5 neighbors. Where a client has no validation node, hidden ones are drawn
    from all that it does not train with.
    """

    generator_epochs: Annotated[
        NonNegativeInt, Help("epochs of each of the generator's two trainings; 0: FedAvg", "Zhang et al. 2021 (code)")
    ] = 20
    generator_rate: Annotated[Positive, Help("learning rate of the generator", "Zhang et al. 2021 (code)")] = 1e-3
    hidden_share: Annotated[Share, Help("validation nodes that are hidden", "Zhang et al. 2021 (code)")] = 0.5
    neighbors: Annotated[PositiveInt, Help("P, most neighbors made for a node", "Zhang et al. 2021 (code)")] = 5
    width: Annotated[PositiveInt, Help("of the generator's widest layer", "Zhang et al. 2021 (code)")] = 2048

    defaults: ClassVar[Mapping[str, object]] = {
        "workload.name": "nodes",
        "workload.exchange": "samples",
        "model.name": "sage",
    }
    traits: ClassVar[Traits] = Traits(weighted_mean=True, same_task=True, classification=True, node_graphs=True)

    def init_client(self, model: FlatModel) -> Mended:
        return Mended(np.zeros(0, np.int64), NOTHING)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Mended, task: ClientTask
    ) -> tuple[Update, Mended]:
        from raysim.training.local_sgd import local_update

        if not state.made:
            state = self.mended(data, task.classes) if self.generator_epochs else replace(state, made=1)
        update = local_update(model, self.judged_data(data, state), message, task)
        made = {"generated_neighbors": float(len(state.centers))}
        return Update(update.delta, {**update.metrics, **made}), state

    def judged_data(self, data: ClientData, state: Mended) -> ClientData:
        from raysim.methods._missing_neighbors import joined
        from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph

        if not len(state.centers):
            return data
        import torch

        graph = training_nodes(data)[0].graph
        features = state.features.reshape(len(state.centers), -1)
        new = (torch.tensor(part, device=graph.x.device) for part in (state.centers, features))
        whole = Subgraph(*joined(graph.x, graph.edge_index, *new))

        def moved(samples: Samples) -> Samples:
            if isinstance(samples, ChangedSamples):  # a malicious client's labels, say
                return replace(samples, samples=moved(samples.samples))
            return NodeSamples(whole, samples.nodes, samples.labels) if isinstance(samples, NodeSamples) else samples

        return replace(data, train=moved(data.train), test=moved(data.test), validation=moved(data.validation))

    def mended(self, data: ClientData, classes: int) -> Mended:
        """The neighbors that a generator makes, trained on the client's own graph and on what others have shown.

        Draws come from torch's global stream, which is that of the client task.

        Raises:
            ConfigError: features are sums of neighbors' (``workload.exchange one_hop``), so that none can be added.
        """
        import torch

        from raysim.methods._missing_neighbors import Generator, Training, averaging, chosen, impaired

        batch, labels = training_nodes(data)
        graph = batch.graph
        if graph.aggregated:
            raise ConfigError(
                "method fedsageplus adds neighbors, and features are sums over them already; set --exchange samples, "
                "or none for generators that learn from their own client alone"
            )
        hidden = self.hidden(data, graph, batch.nodes)
        part = impaired(graph, hidden, self.neighbors, batch.nodes, labels)
        generator = Generator(graph.x.shape[1], classes, self.neighbors, self.width).to(graph.x.device)
        Training(part, graph.elsewhere, self.generator_rate, self.generator_epochs).run(generator)
        with torch.no_grad():
            numbers, nodes, made = generator.eval().missing(graph.x, averaging(graph.edge_index, graph.num_nodes))
            rows, places = chosen(numbers, nodes, self.neighbors)
        return Mended(nodes[rows].cpu().numpy(), made[rows, places].flatten().cpu().numpy(), 1)

    def hidden(self, data: ClientData, graph: Subgraph, train: Tensor) -> Tensor:
        """The nodes that are hidden: a share of those to validate with, or of all that are not trained with."""
        import torch

        from raysim.workloads.graphs.node_batch import NodeSamples

        if isinstance(data.validation, NodeSamples):
            candidates = data.validation.nodes
        else:
            others = torch.ones(graph.num_nodes, dtype=torch.bool, device=graph.x.device)
            others[train] = False
            candidates = others.nonzero().flatten()
        order = torch.randperm(len(candidates)).to(candidates.device)
        return candidates[order[: int(self.hidden_share * len(candidates))]]


METHOD = FedSagePlus
