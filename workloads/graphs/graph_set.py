"""Undirected graphs in flat arrays: many small graphs cost no Python objects and travel as a few buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

NO_FLOATS: Floats = np.zeros(0, np.float32)
NO_ATTRIBUTES: Floats = np.zeros((0, 2, 0), np.float32)


@dataclass(frozen=True, eq=False)
class Graphs:
    """G graphs with labels, and their spectra once these are computed (workloads/graphs/spectra.py).

    Graph g owns the nodes ``node_offsets[g] : node_offsets[g + 1]`` and the edges ``edge_offsets[g] :
    edge_offsets[g + 1]``. The arrays may be read-only (shared memory): nothing writes to them.
    """

    features: Floats
    """Node features [nodes, F]."""
    node_offsets: Integers
    """[G + 1]; every graph has at least one node."""
    edges: Integers
    """[2, edges], each undirected edge once, first end ≤ second end, numbered within its graph; a self-loop has equal
    ends. No edge is there twice."""
    edge_offsets: Integers
    """[G + 1]; a graph may have no edge."""
    labels: NDArray[Any]
    """[G], 0 … classes − 1; of regression numbers [G] or [G, D]."""
    eigenvalues: Floats = field(default_factory=lambda: NO_FLOATS)
    """λ, ascending within each graph [nodes]; empty: not computed."""
    eigenvectors: Floats = field(default_factory=lambda: NO_FLOATS)
    """U of each graph, row-major n × n with one eigenvector a column, one graph behind the other [Σ n²]."""
    attributes: Floats = field(default_factory=lambda: NO_ATTRIBUTES)
    """Attributes of edges [edges, 2, D]: from the first end to the second, and back; D = 0: edges have none."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_classes(self) -> bool:
        """Whether the labels are classes, and not numbers."""
        return self.labels.dtype.kind != "f"

    @property
    def sizes(self) -> Integers:
        """Nodes of each graph [G]."""
        return np.diff(self.node_offsets)

    @property
    def edge_counts(self) -> Integers:
        """Undirected edges of each graph [G]."""
        return np.diff(self.edge_offsets)

    @property
    def edge_width(self) -> int:
        """D, the number of an edge's attributes."""
        return int(self.attributes.shape[2])

    @property
    def widths(self) -> tuple[int, int]:
        """F and D."""
        return self.features.shape[1], self.edge_width

    @property
    def has_spectra(self) -> bool:
        return len(self.eigenvalues) > 0

    @property
    def vector_offsets(self) -> Integers:
        """Where each graph's U lies in ``eigenvectors`` [G + 1]."""
        return offsets(self.sizes**2)

    def subset(self, chosen: Integers) -> Graphs:
        """The chosen graphs, in that order, as copies."""
        nodes = spans(self.node_offsets, chosen)
        edges = spans(self.edge_offsets, chosen)
        spectral = self.has_spectra
        return Graphs(
            self.features[nodes],
            offsets(self.sizes[chosen]),
            self.edges[:, edges],
            offsets(self.edge_counts[chosen]),
            self.labels[chosen],
            self.eigenvalues[nodes] if spectral else NO_FLOATS,
            self._vectors(chosen) if spectral else NO_FLOATS,
            self.attributes[edges] if self.edge_width else self.attributes,
        )

    def _vectors(self, chosen: Integers) -> Floats:
        """The eigenvectors of the chosen graphs, copied graph by graph: faster than by the place of each entry."""
        starts = self.vector_offsets
        parts = [self.eigenvectors[start:stop] for start, stop in zip(starts[chosen], starts[chosen + 1], strict=True)]
        return np.concatenate([NO_FLOATS, *parts])

    def degrees(self) -> Integers:
        """Degree of every node [nodes]; a self-loop counts once."""
        ends = self.edges + np.repeat(self.node_offsets[:-1], self.edge_counts)
        degrees = np.bincount(ends[0], minlength=len(self.features))
        apart = ends[0] != ends[1]
        return degrees + np.bincount(ends[1][apart], minlength=len(self.features))


def undirected(directed: Integers, nodes: int, attributes: Floats | None = None) -> tuple[Integers, Floats]:
    """Each undirected edge once [2, E], first end ≤ second end, in ascending order, and its attributes [E, 2, D].

    Args:
        directed: [2, lines], edges in one direction or in both, any number of times.
        nodes: how many there are; ends are 0 … nodes − 1.
        attributes: of each line [lines, D]. Of lines for the same direction the first counts; a direction without a
            line has the attributes of the other one.
    """
    keys, back = directed[0] * nodes + directed[1], directed[1] * nodes + directed[0]
    kept = np.unique(np.minimum(keys, back))
    first, second = np.divmod(kept, nodes)
    if attributes is None:
        return np.stack([first, second]), NO_ATTRIBUTES
    known, lines = np.unique(np.concatenate([keys, back]), return_index=True)  # of equal keys the first
    both = np.stack([np.searchsorted(known, kept), np.searchsorted(known, second * nodes + first)], axis=1)
    return np.stack([first, second]), attributes[lines[both] % len(keys)]


def of_pairs(
    features: Floats, node_offsets: Integers, pairs: Integers, labels: NDArray[Any], attributes: Floats | None = None
) -> Graphs:
    """Graphs of edges that are numbered over the nodes of all of them, both ends in one graph.

    ``pairs`` [2, lines] and ``attributes`` are as :func:`undirected` takes them, the others as ``Graphs`` has them.
    """
    ends, both = undirected(pairs, int(node_offsets[-1]), attributes)
    owners = np.searchsorted(node_offsets, ends[0], side="right") - 1
    counts = np.bincount(owners, minlength=len(node_offsets) - 1)
    return Graphs(features, node_offsets, ends - node_offsets[owners], offsets(counts), labels, attributes=both)


def without_nodes(labels: Integers, width: int = 0) -> Graphs:
    """Graphs with these labels [G] and nothing else: for a look at how they would be split."""
    none = np.zeros(len(labels) + 1, np.int64)
    return Graphs(np.zeros((0, width), np.float32), none, np.zeros((2, 0), np.int64), none, labels)


def offsets(counts: Integers) -> Integers:
    """[0, c_0, c_0 + c_1, …]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def spans(starts: Integers, chosen: Integers) -> Integers:
    """The positions ``starts[g] … starts[g + 1] − 1`` of every chosen g, one span behind the other."""
    counts = starts[chosen + 1] - starts[chosen]
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    positions: Integers = np.repeat(starts[chosen], counts) + within
    return positions
