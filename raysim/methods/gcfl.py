"""GCFL: clients form clusters by their updates, and each cluster is a federation of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from aggregators.clusters import split
from aggregators.gram import gram_matrix
from aggregators.means import sample_weights, weighted_sum
from raysim.method import ClientTask, Context, Message, Traits, Update, Updates, Vector, WholeModel
from workloads.option_types import Help, NonNegative, NonNegativeInt

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from workloads.federated_data import ClientData


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """Of cluster 0, to which every client belongs at first [d]."""
    split_off: dict[int, Vector]
    """Of the clusters 1, 2, … that came out of splits, each [d]."""
    cluster_of: dict[int, int]
    """The cluster of every client that was moved out of cluster 0."""

    def of_cluster(self, cluster: int) -> Vector:
        return self.split_off[cluster] if cluster else self.parameters


@dataclass(frozen=True)
class GCFL(WholeModel[Server, None]):
    """GCFL: FedAvg inside clusters; a cluster splits in two where its clients' updates pull apart.

    Source: Xie et al. 2021, Federated graph classification over non-IID graphs (NeurIPS; arXiv 2106.13423); the rule of
    the split is in aggregators/clusters.py. As in the authors' code a split takes effect before the round's updates are
    averaged, so that the two halves go different ways at once, and the mean in ‖mean Δ‖ is uniform while a cluster's
    FedAvg is weighted by samples. Norms and cosines are over the shared parameters, not over BatchNorm's running
    statistics; these are averaged in the cluster too.

    Clients of different tasks share the graph convolutions alone, as in the authors' code (raysim/engine/sharing.py).

    Departures: the authors report the best of all clusterings a client went through, here it is judged by its cluster's
    current model. Where the paper is open: only clients that took part in the round are looked at and divided. When a
    cluster splits, the larger side (if equal: that of its first participant) keeps the cluster's number, and so the
    members that did not take part, and clients yet to come.
    """

    small_mean: Annotated[
        NonNegative,
        Help(
            "ε1: a cluster splits only while the norm of its mean update is smaller (the authors' runs: 0.07 on"
            " SM and with BIO, 0.08 with SN)",
            "Xie et al. 2021",
        ),
    ] = 0.05
    large_update: Annotated[
        NonNegative,
        Help(
            "ε2: and while the norm of one of its updates is larger (the authors' runs: 0.28 on SM, 0.35 with"
            " BIO, 0.4 with SN)",
            "Xie et al. 2021",
        ),
    ] = 0.1
    quiet_rounds: Annotated[
        NonNegativeInt, Help("first rounds in which no cluster is split", "Xie et al. 2021 (code)")
    ] = 20

    traits: ClassVar[Traits] = Traits(personal=True)
    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "gin"}

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), {}, {})

    def init_client(self, model: FlatModel) -> None:
        return None

    def message(self, server: Server, client: int) -> Message:
        return Message(server.of_cluster(server.cluster_of.get(client, 0)))

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update

        return local_update(model, data, message, task), None

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        clusters = [server.cluster_of.get(client, 0) for client in updates.clients]
        models = {0: server.parameters, **server.split_off}
        if context.round > self.quiet_rounds:
            for cluster in sorted(set(clusters)):
                leaving = self._leaving(cluster, clusters, updates, context.shared_parameter_count)
                if leaving:
                    models[len(models)] = models[cluster]
                    clusters = [len(models) - 1 if row in leaving else own for row, own in enumerate(clusters)]
        for cluster in sorted(set(clusters)):
            rows = [row for row, own in enumerate(clusters) if own == cluster]
            weights = sample_weights(updates.samples[rows]).tolist()
            models[cluster] = models[cluster] + weighted_sum([updates.deltas[row] for row in rows], weights)
        context.report.round("clusters", float(len(models)))
        context.report.clients("cluster", np.array(clusters, np.float64))
        moved = {client: own for client, own in zip(updates.clients, clusters, strict=True) if own}
        return Server(models.pop(0), models, server.cluster_of | moved)

    def _leaving(self, cluster: int, clusters: list[int], updates: Updates, parameters: int) -> set[int]:
        """Positions of the clients that leave their cluster; none if it stays whole."""
        rows = [row for row, own in enumerate(clusters) if own == cluster]
        halves = split(
            gram_matrix([updates.deltas[row] for row in rows], 0, parameters), self.small_mean, self.large_update
        )
        if halves is None:
            return set()
        first, second = halves
        smaller = first if len(first) < len(second) else second
        return {rows[position] for position in smaller}


METHOD = GCFL
