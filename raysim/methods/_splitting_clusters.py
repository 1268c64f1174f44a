"""The common part of clustered methods: a cluster of clients whose updates pull apart splits in two."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from raysim.aggregators.clusters import largest_norm
from raysim.aggregators.gram import Doubles, gram_matrix
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.method import Context, FlatModel, Message, Updates, Vector
from raysim.methods._halves import StatelessClients

COMPARES = "which splits clusters by comparing the updates of their clients"
"""Why a server step must take updates of several clients."""


@dataclass(frozen=True)
class Server:
    parameters: Vector
    """Shared vector of cluster 0, to which every client belongs at first [d]."""
    split_off: dict[int, Vector]
    """Shared vectors of the clusters 1, 2, … that came out of splits, each [d]."""
    cluster_of: dict[int, int]
    """The cluster of every client that was moved out of cluster 0."""


class SplittingClusters(StatelessClients[Server], Protocol):
    """FedAvg inside clusters; a method says when a cluster splits, and how.

    A split takes effect before the round's updates are averaged, so that the two halves go different ways at once. Only
    clients that took part in the round are looked at and divided. The larger side (if equal: that of its first
    participant) keeps the cluster's number, and so the members that did not take part, and, of cluster 0, clients yet
    to come. A cluster of one or two never splits. Norms and cosines are over parameters, not over BatchNorm's running
    statistics; these are averaged in the cluster too. Of stale updates they are those of the clients, before
    weights by staleness.
    """

    @property
    def quiet_rounds(self) -> int:
        """First rounds in which no cluster is split."""
        ...

    @property
    def large_update(self) -> float:
        """ε₂: a cluster splits only if one of its updates is longer."""
        ...

    @abstractmethod
    def halves(self, gram: Doubles, weights: NDArray[np.float64]) -> tuple[list[int], list[int]] | None:
        """Positions of the two sides of a cluster in its Gram matrix [n, n], that of position 0 first; None: no split.

        Args:
            gram: ⟨Δ_i, Δ_j⟩ of the updates' parameters.
            weights: m_i / Σ_j m_j over the cluster's participants [n].
        """
        ...

    def init_server(self, model: FlatModel) -> Server:
        return Server(model.take_shared(), {}, {})

    def message(self, server: Server, client: int) -> Message:
        return Message(server.split_off.get(server.cluster_of.get(client, 0), server.parameters))

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
        gram = gram_matrix([updates.changes[row] for row in rows], 0, parameters)
        may_split = len(rows) > 2 and largest_norm(gram) > self.large_update
        halves = self.halves(gram, sample_weights(updates.samples[rows])) if may_split else None
        if halves is None:
            return set()
        first, second = halves
        smaller = first if len(first) < len(second) else second
        return {rows[position] for position in smaller}
