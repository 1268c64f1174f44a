"""The federation of one graph: every client has some of the nodes, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import NO_SAMPLES, ClientData, InputSpec, Samples, Stream
from raysim.workloads.graphs.feature_exchange import scales, surroundings
from raysim.workloads.graphs.graph_set import Integers
from raysim.workloads.graphs.node_graph import TEST, TRAIN, VALIDATION, NodeGraph
from raysim.workloads.graphs.split_file import table_of
from raysim.workloads.splits.partition_report import client_table

if TYPE_CHECKING:
    import pandas
    import torch

NONE: Integers = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class NodeFederation:
    """One graph, cut over clients. An edge between nodes of two clients is in no client's graph.

    There is no global test set: every client is judged by its own test nodes, in its own graph. The arrays may be
    read-only (shared memory): nothing writes to them, and what a client needs is copied.
    """

    graph: NodeGraph
    owners: Integers
    """The client of each node [N]."""
    roles: NDArray[np.int8]
    """Role of each node [N]."""
    clients: int
    notes: tuple[str, ...] = ()
    """Notes on the data for the user before the run."""
    synthetic: bool = False
    exchange: int = 0
    """Hops of the exchange of features before training, which has then made ``graph.features`` of Â X; 0: none."""
    shown: Integers = field(default_factory=lambda: NONE)
    """Nodes whose features their clients show all others before training, ascending."""

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.graph.class_names

    @property
    def global_test_size(self) -> int:
        return 0

    @cached_property
    def _counts(self) -> Integers:
        """Nodes of each kind of each client [clients, 4]."""
        return np.bincount(self.owners * 4 + self.roles, minlength=4 * self.clients).reshape(-1, 4)

    def input_spec(self, client: int) -> InputSpec:
        return InputSpec((self.graph.features.shape[1],), len(self.class_names), "nodes", aggregated=self.exchange > 0)

    def samples(self, client: int) -> int:
        return int(self._counts[client, TRAIN])

    def total_samples(self, clients: int) -> int:
        return int(self._counts[:clients, TRAIN].sum())

    def test_samples(self, client: int) -> int:
        return int(self._counts[client, TEST])

    def client_name(self, client: int) -> str:
        return "all clients" if self.clients == 1 else f"client {client}"

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        import torch

        from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph

        own = np.flatnonzero(self.owners == client)
        nodes, edges = own, self.own_edges(client)
        if self.exchange > 1:
            around = surroundings(self.graph.edges, self.owners, client)
            nodes = np.union1d(own, around.outside)
            edges = np.concatenate([edges, around.edges], axis=1)
        both = np.searchsorted(nodes, np.concatenate([edges, edges[::-1]], axis=1))
        x = torch.from_numpy(self.graph.features[nodes]).to(device)
        norm, elsewhere = self._norm(nodes, both, device), self._elsewhere(client, device)
        graph = Subgraph(x, torch.from_numpy(both).to(device), norm, self.exchange > 0, elsewhere)

        def samples(role: int) -> Samples:
            chosen = own[self.roles[own] == role]
            if not len(chosen):
                return NO_SAMPLES
            parts = (np.searchsorted(nodes, chosen), self.graph.labels[chosen])
            return NodeSamples(graph, *(torch.from_numpy(part).to(device) for part in parts))

        return ClientData(client, self.client_name(client), samples(TRAIN), samples(TEST), samples(VALIDATION))

    def _norm(self, nodes: Integers, edges: Integers, device: str) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Â of some nodes by degrees in the whole graph, with loops; None without an exchange, which tells degrees."""
        if not self.exchange:
            return None
        import torch

        roots = scales(self.graph)[nodes]
        loops = np.stack([np.arange(len(nodes))] * 2)
        places = np.concatenate([edges, loops], axis=1)
        weights = (roots[places[0]] * roots[places[1]]).astype(np.float32)
        return torch.from_numpy(places).to(device), torch.from_numpy(weights).to(device)

    def _elsewhere(self, client: int, device: str) -> list[torch.Tensor]:
        """Features [m_j, F] that each other client j shows."""
        import torch

        owners = self.owners[self.shown]
        parts = (self.shown[owners == other] for other in np.unique(owners) if other != client)
        return [torch.from_numpy(self.graph.features[nodes]).to(device) for nodes in parts]

    def exchanged_bytes(self, client: int) -> tuple[int, int]:
        """Bytes that a client sends and receives before training."""
        if not self.exchange:
            own, row = int((self.owners[self.shown] == client).sum()), 4 * self.graph.features.shape[1]
            return row * own, row * (len(self.shown) - own)
        around = surroundings(self.graph.edges, self.owners, client)
        return around.exchanged_bytes(self.exchange, self.graph.features.shape[1])

    def own_edges(self, client: int) -> Integers:
        """Those of both ends' client [2, edges], numbered as in the whole graph."""
        mine = self.owners == client
        first, second = self.graph.edges
        return self.graph.edges[:, mine[first] & mine[second]]

    def neighbors_of_each(self, most: int, stream: Stream) -> Integers:
        """Nodes with a neighbor in their client's graph, at most ``most`` a client, from its stream, ascending."""
        drawn = []
        for client in range(self.clients):
            nodes = np.unique(self.own_edges(client))
            drawn.append(stream(f"shown {client}").permutation(nodes)[:most])
        return np.sort(np.concatenate(drawn))

    def global_test(self, start: int, stop: int, device: str) -> NoReturn:
        raise WorkloadError(f"{self.name}: there is no global test set; every client is judged by its own test nodes")

    def pooled(self) -> NodeFederation:
        """One client with the whole graph: the edges between clients are there again."""
        return replace(self, owners=np.zeros_like(self.owners), clients=1, notes=(), shown=NONE)

    def split_table(self) -> str:
        """The client and the part of every node, as a table that ``--owners`` reads."""
        return table_of(self.owners, self.roles)

    def manifest(self) -> pandas.DataFrame:
        """The table of who has what, and of each client's subgraph.

        Its further columns are validation_samples; nodes and (undirected) edges of the subgraph; cut_edges, those that
        the cut has left out; and homophily, the share of edges whose two nodes have one label (nan without an edge).
        """
        training = self.roles == TRAIN
        table = client_table(self, self.graph.labels[training][np.argsort(self.owners[training], kind="stable")])
        table["validation_samples"] = self._counts[:, VALIDATION]
        return self._with_subgraphs(table)

    def _with_subgraphs(self, table: pandas.DataFrame) -> pandas.DataFrame:
        """The table with the columns of each client's subgraph."""
        table["nodes"] = self._counts.sum(axis=1)
        first, second = self.owners[self.graph.edges]
        within = first == second
        same = within & (self.graph.labels[self.graph.edges[0]] == self.graph.labels[self.graph.edges[1]])
        edges, alike = (np.bincount(first[chosen], minlength=self.clients) for chosen in (within, same))
        cut = np.bincount(np.concatenate([first[~within], second[~within]]), minlength=self.clients)
        table["edges"], table["cut_edges"] = edges, cut
        table["homophily"] = np.divide(alike, edges, out=np.full(self.clients, np.nan), where=edges > 0)
        return table
