"""Link prediction: every client tells pairs of its nodes that are joined from pairs that are not."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import NO_SAMPLES, ClientData, InputSpec, Samples, Stream
from raysim.workloads.graphs.graph_set import Integers
from raysim.workloads.graphs.node_federation import NodeFederation
from raysim.workloads.graphs.node_graph import TEST, TRAIN, UNUSED, VALIDATION
from raysim.workloads.graphs.split_file import table_of
from raysim.workloads.splits.partition_report import client_table

if TYPE_CHECKING:
    import pandas

LEAST = 3
"""Least number of a client's edges: one each to train, validate and test with."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes of one client each: its edges, and as many pairs without an edge for each part."""

    ends: Integers
    """[2, M], numbered as in the whole graph."""
    joined: Integers
    """[M], 1 for an edge."""
    owners: Integers
    """The client of each pair [M]."""
    parts: NDArray[np.int8]
    """TRAIN, VALIDATION or TEST [M]."""


@dataclass(frozen=True, eq=False)
class LinkFederation(NodeFederation):
    """A cut graph whose clients learn which of their nodes are joined: two classes of pairs of nodes.

    A client's network passes over the edges that it trains with, and over no other. Kipf and Welling 2016 (arXiv
    1611.07308) judge such models; here the head reads the product of the two nodes' features.
    """

    pairs: Pairs | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        return ("no edge", "edge")

    @property
    def _pairs(self) -> Pairs:
        assert self.pairs is not None, "links_of sets it"
        return self.pairs

    @cached_property
    def _pair_counts(self) -> Integers:
        """Pairs of each part of each client [clients, 4]."""
        pairs = self._pairs
        return np.bincount(pairs.owners * 4 + pairs.parts, minlength=4 * self.clients).reshape(-1, 4)

    def input_spec(self, client: int) -> InputSpec:
        return InputSpec((self.graph.features.shape[1],), 2, "nodes", pairs=True)

    def samples(self, client: int) -> int:
        return int(self._pair_counts[client, TRAIN])

    def total_samples(self, clients: int) -> int:
        return int(self._pair_counts[:clients, TRAIN].sum())

    def test_samples(self, client: int) -> int:
        return int(self._pair_counts[client, TEST])

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        import torch

        from raysim.workloads.graphs.node_batch import PairSamples, Subgraph

        own, pairs = np.flatnonzero(self.owners == client), self._pairs
        mine = pairs.owners == client
        known = np.searchsorted(own, pairs.ends[:, mine & (pairs.parts == TRAIN) & (pairs.joined == 1)])
        edges = torch.from_numpy(np.concatenate([known, known[::-1]], axis=1)).to(device)
        graph = Subgraph(torch.from_numpy(self.graph.features[own]).to(device), edges)

        def samples(part: int) -> Samples:
            chosen = mine & (pairs.parts == part)
            if not chosen.any():
                return NO_SAMPLES
            ends = torch.from_numpy(np.searchsorted(own, pairs.ends[:, chosen])).to(device)
            return PairSamples(graph, ends, torch.from_numpy(pairs.joined[chosen]).to(device))

        return ClientData(client, self.client_name(client), samples(TRAIN), samples(TEST), samples(VALIDATION))

    def pooled(self) -> LinkFederation:
        """One client with all clients' pairs; edges between clients are no part of it."""
        pairs = self._pairs
        whole = Pairs(pairs.ends, pairs.joined, np.zeros_like(pairs.owners), pairs.parts)
        return LinkFederation(self.graph, np.zeros_like(self.owners), self.roles, 1, pairs=whole)

    def split_table(self) -> str:
        """The client of every node; nodes have no part, as pairs have."""
        return table_of(self.owners, np.full_like(self.roles, UNUSED))

    def manifest(self) -> pandas.DataFrame:
        """The table of who has which pairs, with nodes, edges, cut edges and homophily as of nodes."""
        pairs = self._pairs
        training = pairs.parts == TRAIN
        table = client_table(self, pairs.joined[training][np.argsort(pairs.owners[training], kind="stable")])
        table["validation_samples"] = self._pair_counts[:, VALIDATION]
        return self._with_subgraphs(table)


def links_of(federation: NodeFederation, validation_share: float, test_share: float, stream: Stream) -> LinkFederation:
    """The federation of a cut graph's links: shares of each client's edges, drawn from its stream "split k".

    Raises:
        WorkloadError: a client has too few edges, or too few pairs without one.
    """
    found: list[tuple[NDArray[Any], ...]] = []
    for client in range(federation.clients):
        edges, draws = federation.own_edges(client), stream(f"split {client}")
        count = edges.shape[1]
        own = np.flatnonzero(federation.owners == client)
        if count < LEAST or 4 * count > len(own) * (len(own) - 1):
            raise WorkloadError(
                f"{federation.name}: client {client} has {count} edges between {len(own)} nodes, and links need at "
                f"least {LEAST} and as many pairs without; take fewer clients than {federation.clients}, or task nodes"
            )
        sizes = np.maximum(1, np.rint(count * np.array([validation_share, test_share]))).astype(np.int64)
        sizes = sizes * (np.array([validation_share, test_share]) > 0)
        sizes[0] = min(sizes[0], count - 2)  # one is left to test with,
        sizes[1] = min(sizes[1], count - 1 - sizes[0])  # and one to train with
        part = np.full(count, TRAIN, np.int8)
        order = draws.permutation(count)
        part[order[: sizes[0]]], part[order[sizes[0] : sizes.sum()]] = VALIDATION, TEST
        apart = _without_edge(own, edges, count, draws)
        classes = np.repeat(np.array([1, 0]), count)
        found.append((np.hstack([edges, apart]), classes, np.full(2 * count, client), np.tile(part, 2)))
    ends, joined, owners, parts = (list(each) for each in zip(*found, strict=True))
    pairs = Pairs(np.hstack(ends), *(np.concatenate(each) for each in (joined, owners, parts)))
    values = {field.name: getattr(federation, field.name) for field in fields(NodeFederation)}
    return LinkFederation(**values, pairs=pairs)


def _without_edge(own: Integers, edges: Integers, count: int, draws: np.random.Generator) -> Integers:
    """``count`` distinct pairs [2, count] of a client's nodes that no edge joins."""
    size = len(own)
    taken = set((np.searchsorted(own, edges[0]) * size + np.searchsorted(own, edges[1])).tolist())
    keys: list[int] = []
    while len(keys) < count:
        first, second = np.sort(draws.integers(size, size=(2, count)), axis=0)
        for key in (first * size + second)[first != second].tolist():
            if key not in taken and len(keys) < count:
                taken.add(key)
                keys.append(key)
    return np.stack([own[np.array(keys) // size], own[np.array(keys) % size]])
