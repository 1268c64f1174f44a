"""Spectra on disk: one .npz file for a set of graphs, without pickle, named by a hash of all that decides on them."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from workloads.cache_files import CACHE, whole_file
from workloads.graphs.graph_set import Graphs

FORMAT = 1
"""Part of the key: raise it when the computation gives other numbers."""


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
    """What decides on the spectra, as a name of 24 letters; labels and features do not."""
    # Another NumPy brings another LAPACK, whose last bits may differ.
    digest = hashlib.sha256(json.dumps([FORMAT, np.__version__, laplacian, len(graphs)]).encode())
    for array in (graphs.sizes, graphs.edge_counts, graphs.edges):
        digest.update(np.ascontiguousarray(array, dtype="<i8").data)
    return digest.hexdigest()[:24]
