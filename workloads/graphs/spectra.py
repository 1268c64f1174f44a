"""Spectra of graphs: L = U diag(λ) Uᵀ, computed once per graph, in parallel, and kept on disk.

FedSSP, section 3 (Specformer's preprocessing). All matrices are float64 until the end, λ and U are stored as float32.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from raysim.workloads.files.cache_files import CACHE, whole_file
from raysim.workloads.graphs.graph_set import NO_ATTRIBUTES, Floats, Graphs, Integers, spans
from raysim.workloads.parallel_map import Parallel, sequential

Matrices = NDArray[np.float64]
Laplacian = Literal["normalized", "combinatorial"]

LABEL = "eigendecompositions"
COST = 5e7
"""Largest cost (``cut``) of a task's graphs, about a third of a second; a larger graph is a task of its own."""
TIE = 1e-6
"""Entries of an eigenvector whose sizes differ by less than this part are equally large for its sign."""
FORMAT = 1
"""Part of a kept file's key: raise it when the computation gives other numbers."""


def adjacencies(graphs: Graphs) -> Matrices:
    """A [g, n, n] of g graphs with n nodes each; a self-loop is a 1 on the diagonal."""
    nodes = int(graphs.sizes[0])
    matrices = np.zeros((len(graphs), nodes, nodes))
    graph = np.repeat(np.arange(len(graphs)), graphs.edge_counts)
    first, second = graphs.edges
    matrices[graph, first, second] = 1.0
    matrices[graph, second, first] = 1.0
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
    laplacians = {"normalized": normalized_laplacians, "combinatorial": combinatorial_laplacians}[kind]
    values, vectors = np.linalg.eigh(laplacians(matrices))
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1 - TIE) * sizes.max(axis=-2, keepdims=True), axis=-2)[:, None, :]
    signs = np.where(np.take_along_axis(vectors, first, axis=-2) < 0, -1.0, 1.0)
    return np.clip(values, 0.0, 2.0 if kind == "normalized" else None), vectors * signs


def solve(item: tuple[Graphs, Laplacian]) -> tuple[Floats, Floats]:
    """λ and U, as ``Graphs`` has them, of graphs that ascend in size; those of equal size are decomposed as one stack.

    One BLAS thread: the bits of a graph's spectrum then depend on nothing but that graph.
    """
    piece, laplacian = item
    starts = np.unique(piece.sizes, return_index=True)[1]
    with threadpoolctl.threadpool_limits(1):
        stacks = [piece.subset(own) for own in np.split(np.arange(len(piece)), starts[1:])]
        found = [decompose(adjacencies(stack), laplacian) for stack in stacks]
    values, vectors = ([part.astype(np.float32).ravel() for part in parts] for parts in zip(*found, strict=True))
    return np.concatenate(values), np.concatenate(vectors)


def cut(graphs: Graphs) -> list[Integers]:
    """The numbers of a set's graphs, ascending in size, in pieces of at most ``COST``: n³ a graph, and 1000 a call."""
    order = np.argsort(graphs.sizes, kind="stable")
    bounds, total = [], 0.0
    for index, cost in enumerate((graphs.sizes[order].astype(np.float64) ** 3 + 1000.0).tolist()):
        if total and total + cost > COST:
            bounds.append(index)
            total = 0.0
        total += cost
    return [piece for piece in np.split(order, bounds) if len(piece)]


def join(graphs: Graphs, pieces: list[Integers], solved: Iterator[tuple[Floats, Floats]]) -> Graphs:
    """A set with its spectra, which come piece after piece."""
    vector_offsets = graphs.vector_offsets
    values = np.empty(int(graphs.node_offsets[-1]), np.float32)
    vectors = np.empty(int(vector_offsets[-1]), np.float32)
    for piece in pieces:
        values[spans(graphs.node_offsets, piece)], vectors[spans(vector_offsets, piece)] = next(solved)
    return replace(graphs, eigenvalues=values, eigenvectors=vectors)


def default_folder() -> Path:
    """The folder of this user in which spectra are kept from run to run."""
    return Path(CACHE).expanduser() / "spectra"


@dataclass(eq=False)
class SpectraCache:
    """Finished spectra in a folder (None: none are kept).

    Any number of runs may share the folder: a file appears when it is whole, under a name that says what is in it. A
    file that is damaged counts as missing and is replaced. A folder that cannot be written to costs the speed of the
    next start, so it is one warning and no error.
    """

    folder: Path | None
    _failed: bool = field(default=False, init=False)

    def path(self, graphs: Graphs, laplacian: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{key(graphs, laplacian)}.npz"

    def read(self, graphs: Graphs, laplacian: str) -> Graphs | None:
        """The graphs with their spectra, or None if the folder does not have them whole."""
        path = self.path(graphs, laplacian)
        if path is None:
            return None
        try:
            with (
                path.open("rb") as file,
                np.load(file, allow_pickle=False) as archive,
            ):  # the archive has a checksum of every array
                values, vectors = archive["values"], archive["vectors"]
        except Exception:  # a damaged file may fail in any step of reading it, and all of them mean: compute it again
            return None
        for array, length in ((values, graphs.sizes.sum()), (vectors, (graphs.sizes**2).sum())):
            if array.dtype != np.float32 or array.shape != (length,):
                return None
        return replace(graphs, eigenvalues=values, eigenvectors=vectors)

    def write(self, graphs: Graphs, laplacian: str) -> None:
        path = self.path(graphs, laplacian)
        if path is None or self._failed:
            return
        try:
            with whole_file(path) as partial, partial.open("xb") as file:
                np.savez(file, values=graphs.eigenvalues, vectors=graphs.eigenvectors)
        except OSError as error:
            self._failed = True
            warnings.warn(
                f"the spectra are not kept, because {path.parent} cannot be written to ({error}); the next run "
                "computes them again. Make room there or allow writing",
                stacklevel=3,
            )


def key(graphs: Graphs, laplacian: str) -> str:
    """Key of the spectra, a name of 24 letters made of all that decides on them; labels and features do not."""
    # Another NumPy brings another LAPACK, whose last bits may differ.
    digest = hashlib.sha256(json.dumps([FORMAT, np.__version__, laplacian, len(graphs)]).encode())
    for array in (graphs.sizes, graphs.edge_counts, graphs.edges):
        digest.update(np.ascontiguousarray(array, dtype="<i8").data)
    return digest.hexdigest()[:24]


def compute_spectra(
    sets: Sequence[Graphs],
    laplacian: Laplacian,
    parallel: Parallel = sequential,
    cache: Path | Literal["default"] | None = "default",
) -> list[Graphs]:
    """The graphs with their eigenvalues and eigenvectors.

    The bits of a graph's spectrum depend on that graph and on ``laplacian`` only: not on the other graphs, on how the
    work is cut, on what computes it or on threads.

    Args:
        sets: of graphs.
        laplacian: "normalized" (I − D^{-1/2} A D^{-1/2}) or "combinatorial" (D − A); see the functions above.
        parallel: where the decompositions are computed. All sets' tasks go to it in one call.
        cache: folder of the files that keep spectra, one a set; None: keep nothing. Only this process reads and writes
            it, so it need not be there on other nodes.
    """
    kept = SpectraCache(default_folder() if cache == "default" else cache)
    found = [kept.read(graphs, laplacian) for graphs in sets]
    cuts = [cut(graphs) if known is None else [] for graphs, known in zip(sets, found, strict=True)]
    items = []
    for graphs, pieces in zip(sets, cuts, strict=True):
        bare = replace(graphs, features=graphs.features[:, :0], attributes=NO_ATTRIBUTES)
        items += [(bare.subset(piece), laplacian) for piece in pieces]
    solved = iter(parallel(solve, items, LABEL) if items else [])
    results = []
    for graphs, known, pieces in zip(sets, found, cuts, strict=True):
        if known is None:
            known = join(graphs, pieces, solved)
            kept.write(known, laplacian)
        results.append(known)
    return results
