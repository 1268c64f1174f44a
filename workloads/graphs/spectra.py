"""Spectra of graphs: L = U diag(λ) Uᵀ, computed once per graph, in parallel, and kept on disk.

FedSSP, section 3 (Specformer's preprocessing). All matrices are float64 until the end, λ and U are stored as float32.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.graphs.graph_set import Floats, Graphs, Integers, offsets, spans
from workloads.graphs.spectra_cache import Spectra, SpectraCache, default_folder
from workloads.parallel_map import Parallel, sequential

Matrices = NDArray[np.float64]
Laplacian = Literal["normalized", "combinatorial"]

LABEL = "eigendecompositions"
COST = 5e7
"""Largest cost (``costs``) of a task's graphs, about a third of a second; a larger graph is a task of its own."""
TIE = 1e-6
"""Entries of an eigenvector whose sizes differ by less than this part are equally large for its sign."""


def adjacencies(nodes: int, edges: Integers, edge_counts: Integers) -> Matrices:
    """A [g, n, n] of g graphs with n nodes each; a self-loop is a 1 on the diagonal.

    Args:
        nodes: n.
        edges: [2, edges], undirected edges once, numbered within each graph, one graph behind the other.
        edge_counts: [g].
    """
    matrices = np.zeros((len(edge_counts), nodes, nodes))
    graph = np.repeat(np.arange(len(edge_counts)), edge_counts)
    matrices[graph, edges[0], edges[1]] = 1.0
    matrices[graph, edges[1], edges[0]] = 1.0
    return matrices


def normalized_laplacians(adjacency: Matrices) -> Matrices:
    """I − D^{-1/2} A D^{-1/2} of each of [g, n, n]; eigenvalues in [0, 2].

    D is the row sum of A, so a self-loop counts once in the degree. An isolated node has L_ii = 0, hence λ = 0, as if
    it had a self-loop.
    """
    degrees = adjacency.sum(axis=-1)
    connected = degrees > 0
    scale = 1.0 / np.sqrt(np.where(connected, degrees, 1.0))
    laplacian = -(scale[:, :, None] * adjacency * scale[:, None, :])
    diagonal = np.arange(adjacency.shape[-1])
    laplacian[:, diagonal, diagonal] += connected
    return laplacian


def combinatorial_laplacians(adjacency: Matrices) -> Matrices:
    """D − (A + I) of each of [g, n, n], D the row sum of A + I: what the authors' code decomposes.

    A self-loop adds the same number to D_ii and to (A + I)_ii and so cancels, the added ones like those that the graph
    has: the result is the ordinary Laplacian D − A of the graph without its self-loops. Eigenvalues in [0, 2 · the
    largest degree].
    """
    looped = adjacency + np.eye(adjacency.shape[-1])
    laplacian = -looped
    diagonal = np.arange(adjacency.shape[-1])
    laplacian[:, diagonal, diagonal] += looped.sum(axis=-1)
    return laplacian


def decompose(matrices: Matrices, kind: Laplacian) -> tuple[Matrices, Matrices]:
    """(λ [g, n] ascending, U [g, n, n] with one eigenvector a column) of the Laplacians of adjacencies [g, n, n].

    Rounding must not lead out of the range that the theory gives: λ is at least 0, of the normalized form at most 2.
    The largest entry of every eigenvector (the first of equally large ones) is positive. Eigenvectors of a repeated
    eigenvalue stay what LAPACK gives, any basis of their space is as good.
    """
    laplacians = normalized_laplacians(matrices) if kind == "normalized" else combinatorial_laplacians(matrices)
    values, vectors = np.linalg.eigh(laplacians)
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1 - TIE) * sizes.max(axis=-2, keepdims=True), axis=-2)[:, None, :]
    signs = np.where(np.take_along_axis(vectors, first, axis=-2) < 0, -1.0, 1.0)
    return np.clip(values, 0.0, 2.0 if kind == "normalized" else None), vectors * signs


@dataclass(frozen=True, eq=False)
class Piece:
    """Some graphs of one set, ascending in size: what one task decomposes."""

    sizes: Integers
    edges: Integers
    edge_counts: Integers
    laplacian: Laplacian


def solve(piece: Piece) -> Spectra:
    """Spectra of a piece's graphs, in their order; graphs of equal size are decomposed as one stack.

    One BLAS thread: the bits of a graph's spectrum then depend on nothing but that graph.
    """
    sizes, starts = np.unique(piece.sizes, return_index=True)
    edge_offsets = offsets(piece.edge_counts)
    values: list[Floats] = []
    vectors: list[Floats] = []
    with threadpoolctl.threadpool_limits(1):
        bounds = itertools.pairwise([*starts.tolist(), len(piece.sizes)])
        for nodes, (start, stop) in zip(sizes.tolist(), bounds, strict=True):
            edges = piece.edges[:, edge_offsets[start] : edge_offsets[stop]]
            stack = adjacencies(nodes, edges, piece.edge_counts[start:stop])
            found = decompose(stack, piece.laplacian)
            values.append(found[0].astype(np.float32).ravel())
            vectors.append(found[1].astype(np.float32).ravel())
    return Spectra(np.concatenate(values), np.concatenate(vectors))


def costs(sizes: Integers) -> NDArray[np.float64]:
    """Cost of each graph's decomposition, in units of n³ with something for the call [G]."""
    return sizes.astype(np.float64) ** 3 + 1000.0


def cut(graphs: Graphs, laplacian: Laplacian) -> tuple[Integers, list[Piece]]:
    """(order of the graphs by size, pieces of that order) of one set: contiguous, each of at most ``COST``."""
    order = np.argsort(graphs.sizes, kind="stable")
    sizes, counts = graphs.sizes[order], graphs.edge_counts[order]
    edges = graphs.edges[:, spans(graphs.edge_offsets, order)]
    edge_offsets = offsets(counts)
    bounds, total = [0], 0.0
    for index, cost in enumerate(costs(sizes).tolist()):
        if total and total + cost > COST:
            bounds.append(index)
            total = 0.0
        total += cost
    bounds.append(len(order))
    pieces = [
        Piece(sizes[start:stop], edges[:, edge_offsets[start] : edge_offsets[stop]], counts[start:stop], laplacian)
        for start, stop in itertools.pairwise(bounds)
        if stop > start
    ]
    return order, pieces


def join(graphs: Graphs, order: Integers, solved: Sequence[Spectra]) -> Spectra:
    """The pieces' spectra in the order of the set's graphs."""
    values = np.empty(int(graphs.sizes.sum()), np.float32)
    vectors = np.empty(int((graphs.sizes**2).sum()), np.float32)
    if solved:
        values[spans(graphs.node_offsets, order)] = np.concatenate([found.values for found in solved])
        vectors[spans(graphs.vector_offsets, order)] = np.concatenate([found.vectors for found in solved])
    return Spectra(values, vectors)


def compute_spectra(
    named: Sequence[tuple[str, Graphs]],
    laplacian: Laplacian,
    parallel: Parallel = sequential,
    cache: Path | Literal["default"] | None = "default",
) -> list[Graphs]:
    """The graphs with their eigenvalues and eigenvectors.

    The bits of a graph's spectrum depend on that graph and on ``laplacian`` only: not on the other graphs, on how the
    work is cut, on what computes it or on threads.

    Args:
        named: sets of graphs with names for errors.
        laplacian: "normalized" (I − D^{-1/2} A D^{-1/2}) or "combinatorial" (D − A); see the functions above.
        parallel: where the decompositions are computed. All sets' tasks go to it in one call.
        cache: folder of the files that keep spectra, one a set; None: keep nothing. Only this process reads and writes
            it, so it need not be there on other nodes.

    Raises:
        WorkloadError: an unknown Laplacian, or a graph without nodes.
    """
    if laplacian not in get_args(Laplacian):
        raise WorkloadError(f"laplacian: {laplacian!r} is not allowed; choose {' or '.join(get_args(Laplacian))}")
    for name, graphs in named:
        if len(graphs) and graphs.sizes.min() < 1:
            raise WorkloadError(
                f"{name}: graph {int(graphs.sizes.argmin())} has no node, so no spectrum; leave it out of the set"
            )
    kept = SpectraCache(default_folder() if cache == "default" else cache)
    found = [kept.read(graphs, laplacian) for _, graphs in named]
    missing = [index for index, spectra in enumerate(found) if spectra is None]
    cuts = [cut(named[index][1], laplacian) for index in missing]
    solved = parallel(solve, [piece for _, pieces in cuts for piece in pieces], LABEL) if missing else []
    start = 0
    for index, (order, pieces) in zip(missing, cuts, strict=True):
        spectra = join(named[index][1], order, solved[start : start + len(pieces)])
        start += len(pieces)
        kept.write(named[index][1], laplacian, spectra)
        found[index] = spectra
    return [
        replace(graphs, eigenvalues=spectra.values, eigenvectors=spectra.vectors) if spectra else graphs
        for (_, graphs), spectra in zip(named, found, strict=True)
    ]
