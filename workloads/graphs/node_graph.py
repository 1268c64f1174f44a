"""One graph whose nodes have classes, in flat arrays, and the checks that every file's content goes through."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Floats, Integers

UNUSED, TRAIN, VALIDATION, TEST = range(4)
"""Role of a node, as ``NodeGraph.roles`` has it."""
LARGEST_FEATURES = 4 * 10**9
"""Bytes of all node features as float32."""
MAX_CLASSES = 10_000


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """N nodes with features and classes, and undirected edges between them."""

    name: str
    features: Floats
    """[N, F]."""
    edges: Integers
    """[2, E], each undirected edge once, first end < second end, in ascending order; no loops."""
    labels: Integers
    """[N], 0 … classes − 1."""
    class_names: tuple[str, ...]
    roles: NDArray[np.int8] | None = None
    """[N], what each node is for in the published split; None where there is none."""

    def of_nodes(self, chosen: Integers) -> NodeGraph:
        """The graph of some nodes, in ascending order, and the edges between them."""
        place = np.full(len(self.labels), -1)
        place[chosen] = np.arange(len(chosen))
        first, second = self.edges
        edges = place[self.edges[:, (place[first] >= 0) & (place[second] >= 0)]]
        roles = None if self.roles is None else self.roles[chosen]
        return replace(self, features=self.features[chosen], edges=edges, labels=self.labels[chosen], roles=roles)


def node_graph(
    name: str,
    features: NDArray[np.generic],
    pairs: NDArray[np.generic],
    labels: NDArray[np.generic],
    roles: NDArray[np.int8] | None = None,
    class_names: tuple[str, ...] = (),
) -> NodeGraph:
    """A graph of the content of a file.

    Args:
        name: of the data.
        features: numbers [N, F].
        pairs: ends of the edges [2, any number]: in one direction or both, repeated or not, with loops or without.
        labels: whole numbers [N], 0 … classes − 1.
        roles: the published split.
        class_names: what people call the classes; empty: their numbers.

    Raises:
        ValueError: it is no such graph.
    """
    nodes = len(labels)
    if features.ndim != 2 or features.dtype.kind not in "fiub" or not features.size or len(features) != nodes:
        raise ValueError(f"node features are {features.dtype} {features.shape} for {nodes} labels, not [nodes, width]")
    if not np.isfinite(features).all():
        raise ValueError("node features hold values that are no finite numbers")
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= MAX_CLASSES:
        raise ValueError(f"labels are {labels.dtype} {labels.shape}, not a class from 0 to {MAX_CLASSES - 1} each")
    if pairs.ndim != 2 or len(pairs) != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"edges are {pairs.dtype} {pairs.shape}, not whole numbers [2, edges]")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= nodes):
        wrong = pairs.min() if pairs.min() < 0 else pairs.max()
        raise ValueError(f"an edge names node {wrong}, and there are nodes 0 to {nodes - 1}")
    ends = np.sort(pairs.astype(np.int64), axis=0)
    keys = np.unique((ends[0] * nodes + ends[1])[ends[0] != ends[1]])
    classes = int(labels.max()) + 1
    if class_names and len(class_names) < classes:
        raise ValueError(f"there are {classes} classes and {len(class_names)} names of classes")
    return NodeGraph(
        name,
        np.ascontiguousarray(features, np.float32),
        np.stack(np.divmod(keys, nodes)),
        labels.astype(np.int64),
        class_names or tuple(map(str, range(classes))),
        roles,
    )


def check_size(nodes: int, width: int, name: str) -> None:
    """WorkloadError if dense features would take more memory than is allowed, asked before any of it is taken."""
    if 4 * nodes * max(width, 1) > LARGEST_FEATURES:
        raise WorkloadError(
            f"{name}: {nodes} nodes with {width} features each take {4 * nodes * width / 1e9:.0f} GB as float32, and "
            f"at most {LARGEST_FEATURES / 1e9:g} GB are allowed; take a smaller graph"
        )
