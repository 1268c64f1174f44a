"""Made-up graphs for trying graph learning without any data set: every client has a structural family of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from raysim.workloads.federated_data import Stream
from raysim.workloads.graphs.federation import GraphClient, GraphFederation
from raysim.workloads.graphs.graph_set import Graphs, Integers, of_pairs, offsets, without_nodes
from raysim.workloads.graphs.set_files import one_hot
from raysim.workloads.graphs.spectra import Laplacian
from raysim.workloads.graphs.stratified_split import stratified
from raysim.workloads.graphs.tudataset import DEFAULTS, LAPLACIAN, TEST_SHARE, VALIDATION_SHARE, check_shares
from raysim.workloads.option_types import Ge, Help, Le, OpenShare, ShareBelowOne

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Family:
    """How a client's graphs are made: ``make(networkx, class number, nodes, seed)``, about ``nodes`` nodes large."""

    name: str
    class_names: tuple[str, ...]
    width: int
    """Columns of the one-hot node degrees; the last stands for all larger degrees too. They differ between families,
    so that clients have input layers of different shapes."""
    smallest: int
    largest: int
    make: Callable[[Any, int, int, int], networkx.Graph]


@dataclass(frozen=True)
class ToyGraphs:
    """Generated graphs: every client has one of six families (client k: family k mod 6).

    Erdős–Rényi (few or many edges), Barabási–Albert (1, 2 or 3 edges a new node), Watts–Strogatz (a ring, rewired or
    not), grids (narrow or square), trees (long, random, bushy), stochastic blocks (1, 2 or 3 communities of equal
    density). What is in brackets is the class of a graph.

    Node features are one-hot degrees. Not real data: every output of a run says so. ``load`` draws from the streams
    "toy-graphs k" and "split NAME".
    """

    name: ClassVar[str] = "toy-graphs"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
    defaults: ClassVar[Mapping[str, object]] = {**DEFAULTS, "training.batch_size": 16, "schedule.rounds": 30}

    clients: Annotated[int, Ge(1), Le(10_000), Help("number of clients; the graphs of all are held in memory")] = 4
    graphs_per_client: Annotated[int, Ge(3), Le(10_000), Help("graphs of each client, in all")] = 60
    test_share: Annotated[OpenShare, Help(TEST_SHARE)] = 0.1
    validation_share: Annotated[ShareBelowOne, Help(VALIDATION_SHARE)] = 0.1
    laplacian: Annotated[Laplacian, LAPLACIAN] = "normalized"

    def __post_init__(self) -> None:
        check_shares(self.test_share, self.validation_share)

    def load(self, stream: Stream) -> GraphFederation:
        clients = tuple(self._client(client, stream) for client in range(self.clients))
        return GraphFederation(self.name, True, clients, self.laplacian)

    def sketch(self, stream: Stream) -> GraphFederation:
        """The federation that ``load`` gives, with graphs that have no nodes."""
        clients = tuple(self._client(client, stream, empty=True) for client in range(self.clients))
        return GraphFederation(self.name, True, clients, self.laplacian)

    def _client(self, client: int, stream: Stream, empty: bool = False) -> GraphClient:
        cycle, number = divmod(client, len(FAMILIES))
        family = FAMILIES[number]
        name = family.name if not cycle else f"{family.name} {cycle + 1}"
        generator = stream(f"{self.name} {client}")
        labels = generator.permutation(np.arange(self.graphs_per_client) % len(family.class_names))
        parts = stratified(labels, self.validation_share, self.test_share, stream(f"split {name}"))
        if empty:
            return GraphClient(name, without_nodes(labels, family.width), *parts, family.class_names, family.name)
        nodes = generator.integers(family.smallest, family.largest + 1, size=len(labels))
        seeds = generator.integers(2**31, size=len(labels))
        import networkx

        drawn = zip(labels.tolist(), nodes.tolist(), seeds.tolist(), strict=True)
        made = [family.make(networkx, *values) for values in drawn]
        graphs = from_networkx(made, labels, family.width)
        return GraphClient(name, graphs, *parts, family.class_names, family.name)


def from_networkx(made: list[networkx.Graph], labels: Integers, width: int) -> Graphs:
    """These graphs with one-hot degrees as features, [nodes, width]; degrees of width − 1 and more share a column."""
    import networkx

    node_offsets = offsets(np.array([len(graph) for graph in made]))
    pairs = [
        np.array(networkx.convert_node_labels_to_integers(graph, first).edges, np.int64).reshape(-1, 2)
        for graph, first in zip(made, node_offsets.tolist(), strict=False)
    ]
    none = np.zeros((int(node_offsets[-1]), 0), np.float32)
    bare = of_pairs(none, node_offsets, np.concatenate(pairs).T, labels)
    degrees = np.minimum(bare.degrees(), width - 1)[:, None]
    return replace(bare, features=one_hot(degrees, np.array([width]), "toy-graphs", "one-hot node features"))


# networkx is given to what makes a graph: the list of options does without it.


def _erdos_renyi(nx: Any, label: int, nodes: int, seed: int) -> networkx.Graph:
    """Isolated nodes occur, mostly in the first class."""
    return nx.fast_gnp_random_graph(nodes, (2.0, 4.0)[label] / (nodes - 1), seed=seed)


def _barabasi_albert(nx: Any, label: int, nodes: int, seed: int) -> networkx.Graph:
    return nx.barabasi_albert_graph(nodes, label + 1, seed=seed)


def _watts_strogatz(nx: Any, label: int, nodes: int, seed: int) -> networkx.Graph:
    return nx.watts_strogatz_graph(nodes, 4, (0.02, 0.5)[label], seed=seed)


def _grid(nx: Any, label: int, nodes: int, seed: int) -> networkx.Graph:
    """Two rows or a square; a tenth of the edges is missing, so that no two graphs of a size are the same."""
    rows = (2, round(nodes**0.5))[label]
    graph = nx.grid_2d_graph(rows, round(nodes / rows))
    generator = np.random.default_rng(seed)
    edges = list(graph.edges())
    dropped = generator.choice(len(edges), size=len(edges) // 10, replace=False)
    graph.remove_edges_from([edges[index] for index in dropped.tolist()])
    return graph


def _tree(nx: Any, label: int, nodes: int, seed: int) -> networkx.Graph:
    """Each new node hangs on one of the last two nodes, on any node, or on one of the first three."""
    generator = np.random.default_rng(seed)
    graph = nx.Graph()
    graph.add_node(0)
    for node in range(1, nodes):
        low, high = ((max(0, node - 2), node), (0, node), (0, min(3, node)))[label]
        graph.add_edge(int(generator.integers(low, high)), node)
    return graph


def _blocks(nx: Any, label: int, nodes: int, seed: int) -> networkx.Graph:
    """A graph of 1, 2 or 3 communities of equal density.

    A node has about 5 neighbors in its community, whatever the class, and one in two nodes one outside it; with more
    communities these are smaller, denser and so richer in triangles.
    """
    communities = label + 1
    sizes = [len(part) for part in np.array_split(np.arange(nodes), communities)]
    outside = 0.5 / max(1, nodes - sizes[0])
    inside = min(1.0, 5.0 / (sizes[0] - 1))
    chances = np.full((communities, communities), outside)
    np.fill_diagonal(chances, inside)
    return nx.stochastic_block_model(sizes, chances.tolist(), seed=seed)


FAMILIES: tuple[Family, ...] = (
    Family("erdos-renyi", ("few edges", "many edges"), 8, 12, 28, _erdos_renyi),
    Family("barabasi-albert", ("1 a node", "2 a node", "3 a node"), 12, 12, 28, _barabasi_albert),
    Family("watts-strogatz", ("ring", "rewired"), 9, 12, 28, _watts_strogatz),
    Family("grid", ("narrow", "square"), 5, 16, 36, _grid),
    Family("tree", ("long", "random", "bushy"), 7, 10, 24, _tree),
    Family("blocks", ("1 block", "2 blocks", "3 blocks"), 10, 24, 36, _blocks),
)
