"""Node classification: one graph, whose nodes are cut over clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.graphs.client_parts import LEAST, Skew, client_parts
from raysim.workloads.graphs.feature_exchange import spread_features
from raysim.workloads.graphs.graph_cuts import communities, grouped, largest_component, metis_parts
from raysim.workloads.graphs.graph_set import Floats, Integers
from raysim.workloads.graphs.link_federation import links_of
from raysim.workloads.graphs.node_federation import NodeFederation
from raysim.workloads.graphs.node_files import read_nodes
from raysim.workloads.graphs.node_graph import TEST, TRAIN, VALIDATION, NodeGraph
from raysim.workloads.graphs.split_file import read_owners, read_roles
from raysim.workloads.graphs.split_notes import notes_of
from raysim.workloads.graphs.stratified_split import stratified
from raysim.workloads.graphs.tudataset import check_shares
from raysim.workloads.option_types import Ge, Help, OpenShare, PositiveInt, ShareBelowOne

PLACES: Mapping[str, str] = {
    "cora": "planetoid/Cora",
    "citeseer": "planetoid/CiteSeer",
    "pubmed": "planetoid/PubMed",
    "photo": "amazon/Photo",
    "computers": "amazon/Computers",
    "cs": "coauthor/CS",
    "physics": "coauthor/Physics",
    "actor": "heterophilous/actor",
    "chameleon": "heterophilous/chameleon_filtered",
    "squirrel": "heterophilous/squirrel_filtered",
    "minesweeper": "heterophilous/minesweeper",
}
"""Graph to its folder below $RAYSIM_DATA, laid out as PyTorch Geometric has it."""


HOPS: Mapping[str, int] = {"none": 0, "samples": 0, "one_hop": 1, "two_hops": 2}
"""Values of the option ``exchange``, and the hops of their sums."""
SHOWN = 100
"""Most nodes whose features a client shows to others (``exchange samples``)."""


@dataclass(frozen=True)
class Nodes:
    """One graph of a published file, cut over clients; a client has its nodes and the edges between them.

    Edges between nodes of two clients are left out, or count by an exchange; a run says how many. All nodes of a client
    are in its graph, and the loss is that of its training nodes. ``load`` draws from the streams partition, split (of
    shares of the whole graph) and "split k" of client k.

    The cuts that follow edges are those of subgraph learning: ``louvain`` with ``slack`` 20 is FedSage's (Zhang et al.
    2021) and FedTAD's (Zhu et al. 2024), but for networkx' Louvain in the place of python-louvain's; ``metis`` with
    ``component largest`` is FED-PUB's (Baek et al. 2023).
    """

    name: ClassVar[str] = "nodes"
    inputs: ClassVar[Literal["array", "graph", "nodes"]] = "nodes"
    defaults: ClassVar[Mapping[str, object]] = {
        "model.name": "gcn",
        "training.optimizer": "adam",
        "training.learning_rate": 0.01,
        "training.weight_decay": 5e-4,
        "training.batch_size": 100_000,
        "schedule.local_epochs": 5,
    }

    graph: Annotated[
        Literal[
            "cora", "citeseer", "pubmed", "photo", "computers", "cs", "physics", "actor", "chameleon", "squirrel",
            "minesweeper",
        ],
        Help("graph in $RAYSIM_DATA, in the folders that PyTorch Geometric has (planetoid/Cora/raw …)"),
    ] = "cora"  # fmt: skip
    path: Annotated[
        str,
        Help(
            "in place of graph: an .npz file in the layout of Amazon and Coauthor or of the heterophilous graphs, "
            "whose name the data then has, or a folder of Planetoid's ind.NAME.x …"
        ),
    ] = ""
    clients: Annotated[PositiveInt, Help("number of clients")] = 5
    partition: Annotated[
        Literal["iid", "dirichlet", "louvain", "metis", "file"],
        Help(
            "which nodes a client gets: iid (at random), dirichlet (label skew), louvain (communities, put together to "
            "clients of nearly equal size), metis (parts of nearly equal size with few edges between them; needs the "
            "package pymetis), or file (owners)"
        ),
    ] = "iid"
    alpha: Skew = 0.5
    slack: Annotated[
        int, Ge(0), Help("of louvain: nodes by which clients' sizes may differ", "FedSage, FedTAD (code)")
    ] = 20
    owners: Annotated[
        str,
        Help(
            "of partition file: a text file with the client of every node, 0 to clients - 1, a line each, or the "
            "split.csv of a run's folder"
        ),
    ] = ""
    component: Annotated[
        Literal["all", "largest"], Help("nodes that are cut: all, or those of the largest connected component")
    ] = "all"
    split: Annotated[
        Literal["auto", "published", "random", "overall", "file"],
        Help(
            "training, validation and test nodes: published (the public split of Planetoid, the first of the "
            "heterophilous graphs), random (shares of every client's nodes, by class), overall (shares of the whole "
            "graph's nodes, whatever their client and class, as FED-PUB has it), file (the parts that the file owners "
            "has), or auto: published where there is one"
        ),
    ] = "auto"
    task: Annotated[
        Literal["nodes", "links"],
        Help(
            "what is learned: classes of nodes, or links: which pairs of a client's nodes are joined, of its edges and "
            "as many other pairs, with test_share and validation_share of them held back"
        ),
    ] = "nodes"
    test_share: Annotated[OpenShare, Help("share of the nodes that are tested with, for random and overall")] = 0.2
    validation_share: Annotated[
        ShareBelowOne, Help("share of the nodes that are validated with, for random and overall")
    ] = 0.2
    normalize: Annotated[
        bool, Help("divide a node's features by their sum, where none is negative", "Kipf and Welling 2017")
    ] = True

    exchange: Annotated[
        Literal["none", "one_hop", "two_hops", "samples"],
        Help(
            "edges between clients: left out (none), or an exchange of sums of neighbors' features before training, of "
            "each client's nodes (one_hop) and of their neighbors elsewhere too (two_hops); or left out, and each "
            f"client shows features of {SHOWN} of its nodes to methods that make up neighbors (samples); its bytes "
            "count in round 1",
            "FedGCN, Yao et al. 2023; FedSage+, Zhang et al. 2021",
        ),
    ] = "none"

    def __post_init__(self) -> None:
        check_shares(self.test_share, self.validation_share)
        if (self.partition == "file") != bool(self.owners):
            raise WorkloadError(
                f"workload.owners is {self.owners!r} with workload.partition {self.partition}; a cut from a file needs "
                "both: --partition file --owners FILE"
            )
        if self.task == "links" and self.exchange != "none":
            raise WorkloadError("workload.exchange looks at edges that task links must not know; set it to none")
        if self.split == "file" and not self.owners:
            raise WorkloadError(
                "workload.split file takes the parts of --owners, which is not set: the split.csv of a run"
            )

    def load(self, stream: Stream) -> NodeFederation:
        """Reads the graph and cuts it. WorkloadError if it cannot be had or cannot be cut as asked."""
        graph = self._graph()
        owners = self._owners(graph, stream)
        roles = self._roles(graph, owners, stream)
        hops = HOPS[self.exchange]
        if hops:
            graph = replace(graph, features=spread_features(graph))
        federation = NodeFederation(graph, owners, roles, self.clients, exchange=hops)
        if self.exchange == "samples":
            federation = replace(federation, shown=federation.neighbors_of_each(SHOWN, stream))
        idle = [client for client in range(self.clients) if not federation.samples(client)]
        if idle and self.task == "nodes":
            raise WorkloadError(
                f"{graph.name}: of {self.clients} clients {len(idle)} have no node to train on (client {idle[0]}, say);"
                " take fewer clients, or set split to random"
            )
        federation = replace(federation, notes=tuple(notes_of(federation, self.task == "links")))
        if self.task == "links":
            return links_of(federation, self.validation_share, self.test_share, stream)
        return federation

    def sketch(self, stream: Stream) -> NodeFederation:
        """The same, as only the file tells how many nodes there are."""
        return self.load(stream)

    def _graph(self) -> NodeGraph:
        base = os.environ.get("RAYSIM_DATA")
        if self.path:
            place = Path(self.path).expanduser()
        elif base:
            place = Path(base).expanduser() / PLACES[self.graph]
        else:
            raise WorkloadError(f"workload nodes looks for {self.graph} in $RAYSIM_DATA, which is not set; set path")
        graph = read_nodes(place)
        if self.component == "largest":
            graph = graph.of_nodes(largest_component(graph.edges, len(graph.labels)))
        return replace(graph, features=_shares(graph.features)) if self.normalize else graph

    def _owners(self, graph: NodeGraph, stream: Stream) -> Integers:
        """The client of each node [N]."""
        nodes = len(graph.labels)
        if self.partition == "file":
            return read_owners(Path(self.owners).expanduser(), nodes, self.clients)
        if self.partition in ("iid", "dirichlet"):
            parts = client_parts(
                graph.name, graph.labels, self.clients, self.partition, self.alpha, stream, what="nodes"
            )
            owners = np.empty(nodes, np.int64)
            for client, own in enumerate(parts):
                owners[own] = client
            return owners
        seed = int(stream("partition").integers(2**31))
        if self.partition == "louvain":
            owners = grouped(communities(graph.edges, nodes, seed), self.clients, self.slack)
        else:
            owners = metis_parts(graph.edges, nodes, self.clients, seed)
        least = int(np.bincount(owners, minlength=self.clients).min())
        if least < LEAST:
            raise WorkloadError(
                f"{graph.name}: partition {self.partition} leaves a client {least} of its {nodes} nodes, and each "
                f"needs at least {LEAST}; take fewer clients than {self.clients}"
            )
        return owners

    def _roles(self, graph: NodeGraph, owners: Integers, stream: Stream) -> NDArray[np.int8]:
        """Role of each node."""
        if self.split in ("auto", "published") and graph.roles is not None:
            return graph.roles
        if self.split == "file":
            return read_roles(Path(self.owners).expanduser(), len(owners))
        if self.split == "published":
            raise WorkloadError(f"{graph.name} has no published split; set split to random")
        roles = np.zeros(len(owners), np.int8)
        if self.split == "overall":
            counts = np.rint(len(owners) * np.array([self.validation_share, self.test_share])).astype(np.int64)
            order = stream("split").permutation(len(owners))
            for role, part in zip((VALIDATION, TEST, TRAIN), np.split(order, np.cumsum(counts)), strict=True):
                roles[part] = role
            return roles
        for client in range(self.clients):
            own = np.flatnonzero(owners == client)
            parts = stratified(graph.labels[own], self.validation_share, self.test_share, stream(f"split {client}"))
            for role, part in zip((TRAIN, VALIDATION, TEST), parts, strict=True):
                roles[own[part]] = role
        return roles


def _shares(features: Floats) -> Floats:
    if features.min() < 0:
        return features
    sums = features.sum(axis=1, keepdims=True)
    return (features / np.where(sums > 0, sums, 1)).astype(np.float32)
