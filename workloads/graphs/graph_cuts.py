"""Cuts of one graph over clients that follow its edges: communities by Louvain, balanced parts by METIS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Integers


def communities(edges: Integers, nodes: int, seed: int) -> list[Integers]:
    """Find communities of large modularity with the Louvain method of networkx (Blondel et al. 2008).

    The last two answers are kept: the methods of a study cut the same graph with the same seed one after another.

    Args:
        edges: [2, E], each undirected edge once.
        nodes: N; one without an edge is a community of its own.
        seed: of the order in which nodes are visited.

    Returns:
        Nodes of each community in ascending order; communities by their first node. The arrays are read-only.
    """
    return [*_communities(np.asarray(edges, np.int64).tobytes(), nodes, seed)]


@lru_cache(maxsize=2)
def _communities(edges: bytes, nodes: int, seed: int) -> tuple[Integers, ...]:
    """The same, of the bytes of the edges."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(np.frombuffer(edges, np.int64).reshape(2, -1).T.tolist())
    parts = [np.array(sorted(part), np.int64) for part in networkx.community.louvain_communities(graph, seed=seed)]
    for part in parts:
        part.flags.writeable = False
    return tuple(sorted(parts, key=lambda members: int(members[0])))


def grouped(parts: Sequence[Integers], clients: int, slack: int) -> Integers:
    """Put communities together to one subgraph a client, as FedSage and FedTAD do (their code).

    With s = ⌊N / clients⌋ nodes a client: a community of more than s − ``slack`` nodes is cut into pieces of at most
    that many. Pieces go, from the largest on, to the client whose turn it is; one that has s nodes gets no more, and
    one that a piece would bring to s + ``slack`` nodes passes it on. Their code never ends where every client passes
    a piece on: here it goes to the client with the fewest nodes.

    Args:
        parts: nodes of each community, N in all.
        clients: their number.
        slack: δ, by which sizes may differ.

    Returns:
        The client of each node [N].
    """
    nodes = sum(map(len, parts))
    size = nodes // clients
    most = max(1, size - slack)
    pieces = [part[start : start + most] for part in parts for start in range(0, len(part), most)]
    owners = np.empty(nodes, np.int64)
    counts = np.zeros(clients, np.int64)
    open_clients, turn = list(range(clients)), 0
    for piece in sorted(pieces, key=len, reverse=True):
        while len(open_clients) > 1 and counts[open_clients[turn]] >= size:
            del open_clients[turn]
            turn %= len(open_clients)
        for _ in open_clients:
            if counts[open_clients[turn]] + len(piece) < size + slack:
                client = open_clients[turn]
                break
            turn = (turn + 1) % len(open_clients)
        else:
            client = int(counts.argmin())
        owners[piece] = client
        counts[client] += len(piece)
    return owners


def metis_parts(edges: Integers, nodes: int, parts: int, seed: int) -> Integers:
    """Cut a graph into parts of nearly equal size with few edges between them, by METIS (Karypis and Kumar 1998).

    Args:
        edges: [2, E], each undirected edge once.
        nodes: N.
        parts: their number.
        seed: of METIS' random choices.

    Returns:
        The part of each node [N].

    Raises:
        WorkloadError: pymetis is not installed.
    """
    try:
        import pymetis
    except ImportError as error:
        raise WorkloadError(
            "partition metis needs the package pymetis; install it: pip install 'raysim[metis]', or pip install pymetis"
        ) from error
    both = np.concatenate([edges, edges[::-1]], axis=1)
    order = np.lexsort((both[1], both[0]))
    starts = np.concatenate([[0], np.cumsum(np.bincount(both[0], minlength=nodes))])
    neighbors = pymetis.CSRAdjacency(starts.tolist(), both[1][order].tolist())
    found = pymetis.part_graph(parts, adjacency=neighbors, options=pymetis.Options(seed=seed))
    return np.array(found.vertex_part, np.int64)


def largest_component(edges: Integers, nodes: int) -> Integers:
    """Nodes of the largest connected component in ascending order; of several, the one with the first node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second = edges
    adjacency = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(nodes, nodes))
    _, component = connected_components(adjacency, directed=False)
    return np.flatnonzero(component == np.bincount(component).argmax())
