"""Notes for the user on what a cut of one graph leaves to its clients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysim.workloads.graphs.node_federation import NodeFederation
from raysim.workloads.graphs.node_graph import TRAIN


def notes_of(federation: NodeFederation, links: bool = False) -> Iterator[str]:
    """Sentences on edges between clients, isolated nodes, clients without test nodes, and classes that clients lack."""
    graph, owners = federation.graph, federation.owners
    first, second = owners[graph.edges]
    total, kept = graph.edges.shape[1], int((first == second).sum())
    left = "count by an exchange of sums of features before training" if federation.exchange else "are left out"
    if kept < total:
        yield f"{graph.name}: {total - kept} of {total} edges join nodes of two clients and {left}"
    alone = len(owners) - len(np.unique(graph.edges[:, first == second]))
    if alone:
        yield f"{graph.name}: {alone} of {len(owners)} nodes have no neighbor in their client's graph"
    if links:  # what follows is of nodes that are classified
        return
    untested = [client for client in range(federation.clients) if not federation.test_samples(client)]
    if untested:
        yield (
            f"{graph.name}: {len(untested)} of {federation.clients} clients have no node to be tested with (client "
            f"{untested[0]}, say); accuracies are means over the others"
        )
    classes = len(graph.class_names)
    training = federation.roles == TRAIN
    counts = np.bincount(owners[training] * classes + graph.labels[training], minlength=federation.clients * classes)
    lacking = int((counts.reshape(-1, classes) == 0).any(1).sum())
    if lacking:
        yield f"{graph.name}: {lacking} of {federation.clients} clients have no training node of some class"
