"""Published files of graphs whose nodes have classes: Planetoid, Amazon and Coauthor, and heterophilous graphs.

What PyTorch Geometric reads of them is read here (tests compare the two), but PyG unpickles Planetoid's files, which
runs whatever a pickle asks for, and hands unchecked indices to SciPy, which then writes beyond its arrays.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.array_files import array_members, read_member
from raysim.workloads.files.array_pickles import unpickled
from raysim.workloads.files.regular_files import open_regular
from raysim.workloads.files.table_files import listed
from raysim.workloads.graphs.graph_set import Floats, Integers
from raysim.workloads.graphs.node_graph import TEST, TRAIN, UNUSED, VALIDATION, NodeGraph, check_size, node_graph

HETEROPHILOUS = "as the heterophilous graphs of Platonov et al. 2023"
FORMS: Mapping[str, tuple[str, ...]] = {
    HETEROPHILOUS: ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks"),
    "as Amazon and Coauthor": (
        "attr_shape", "attr_data", "attr_indices", "attr_indptr", "adj_indices", "adj_indptr", "labels",
    ),
}  # fmt: skip
"""Layout of an .npz file to its arrays; a file is in the one whose first array it has, whatever it is called."""
PLANETOID = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500
"""Number of validation nodes of the public split, those that follow the training nodes (Yang et al. 2016)."""
LARGEST_FILE = 2 * 10**9
"""Bytes."""
DAMAGE = (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, EOFError, zipfile.BadZipFile, zlib.error)
"""Exceptions that reading a damaged file raises."""


class _Sparse:
    """A pickled SciPy matrix as its arrays, which nothing has used yet."""


SCIPY = {(f"scipy.sparse.{module}", "csr_matrix"): _Sparse for module in ("csr", "_csr")}
LISTS = {("collections", "defaultdict"): lambda *_: {}, ("__builtin__", "list"): list, ("builtins", "list"): list}


def read_nodes(path: Path) -> NodeGraph:
    """The graph in an .npz file, or in the folder (or its folder raw) that has such a file or Planetoid's.

    Raises:
        WorkloadError: there is none, or it is damaged.
    """
    folder = path / "raw" if (path / "raw").is_dir() else path
    if path.is_file():
        found = [path]
    elif folder.is_dir():
        found = sorted([*folder.glob("*.npz"), *folder.glob("ind.*.allx")])
    else:
        raise WorkloadError(f"no file or folder {path}; give an .npz file, or the folder of Planetoid's ind.NAME.x …")
    if len(found) != 1:
        below = sorted([*path.glob("*/raw/*.npz"), *path.glob("*/raw/ind.*.allx")])
        hint = f"; there is one in {below[0].parents[1]}" if below and not found else ""
        raise WorkloadError(
            f"{path} has {len(found)} graphs, and one is needed: NAME.npz, or ind.NAME.x, …, of one set{hint}"
        )
    try:
        if found[0].name.endswith(".allx"):
            return _planetoid(found[0].parent, found[0].name.split(".", 1)[1].removesuffix(".allx"))
        return _npz(found[0])
    except DAMAGE as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise WorkloadError(f"{found[0]}: it is no graph of nodes with classes ({reason}). Copy it again") from error


def _npz(path: Path) -> NodeGraph:
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        members = array_members(archive)
        arrays = {name: read_member(archive, member) for name, member in members.items()}
    form = next((form for form, names in FORMS.items() if names[0] in arrays), "")
    missing = [name for name in FORMS.get(form, ()) if name not in arrays]
    if not form or missing:
        expected = "; or ".join(f"{', '.join(names)} ({layout})" for layout, names in FORMS.items())
        raise WorkloadError(
            f"{path}: it is no graph of nodes with classes; expected are the arrays {expected}, and it has "
            f"{listed(arrays) or 'none'}"
        )
    if form == HETEROPHILOUS:
        return _heterophilous(arrays, path.stem)
    rows, width = (int(size) for size in arrays["attr_shape"])
    check_size(rows, width, path.stem)
    features = _dense(arrays, "attr_data", "attr_indices", "attr_indptr", (rows, width))
    starts, ends = _rows(arrays["adj_indptr"], rows, len(arrays["adj_indices"])), arrays["adj_indices"]
    pairs = np.stack([np.repeat(np.arange(rows), np.diff(starts)), ends])
    names = tuple(str(name) for name in arrays["class_names"]) if "class_names" in arrays else ()
    # Features are words that occur, as PyG has them.
    return node_graph(path.stem, (features > 0).astype(np.float32), pairs, arrays["labels"], class_names=names)


def _heterophilous(arrays: Mapping[str, NDArray[Any]], name: str) -> NodeGraph:
    """Read a set with ten published splits, of which the first is taken."""
    features, labels = arrays["node_features"], arrays["node_labels"]
    roles = np.zeros(len(labels), np.int8)
    for role, part in ((TRAIN, "train"), (VALIDATION, "val"), (TEST, "test")):
        mask = arrays[f"{part}_masks"]
        if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != len(labels) or not len(mask):
            raise ValueError(f"{part}_masks is {mask.dtype} {mask.shape}, not bool [splits, {len(labels)}]")
        roles[mask[0]] = role
    edges = arrays["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError(f"edges are {edges.dtype} {edges.shape}, not whole numbers [edges, 2]: edge_index.T of PyG")
    return node_graph(name, features, edges.T, labels, roles)


def _planetoid(folder: Path, name: str) -> NodeGraph:
    """Training nodes come first, the nodes of ``allx`` next, test nodes last in the order of ``test.index``.

    Where numbers are missing in ``test.index`` (CiteSeer), nodes without features stand in their place.
    """
    held: dict[str, Any] = {}
    for part in PLANETOID:
        path = folder / f"ind.{name}.{part}"
        if not path.is_file():
            raise WorkloadError(f"there is no {path}; a Planetoid set has the files ind.{name}.{', .'.join(PLANETOID)}")
        if path.stat().st_size > LARGEST_FILE:
            raise WorkloadError(f"{path} is larger than {LARGEST_FILE / 1e9:g} GB")
        content = path.read_bytes()
        if part == "test.index":
            held[part] = np.array(content.split(), dtype=np.int64)
            continue
        try:
            held[part] = unpickled(content, "latin1", LISTS if part == "graph" else SCIPY)
        except ValueError as error:
            raise ValueError(f"ind.{name}.{part}: {error}") from error
    tests: Integers = held["test.index"]
    first, training = len(_array(held, "ally")), len(_array(held, "y"))
    if not len(tests) or tests.min() != first or len(np.unique(tests)) != len(tests):
        raise ValueError(f"test.index must number each test node once, from {first}, the number of nodes in ally")
    nodes = int(tests.max()) + 1
    width = _shape(held["allx"])[1]
    check_size(nodes, width, name)
    features = np.zeros((nodes, width), np.float32)
    labels = np.zeros(nodes, np.int64)
    for part, label, where in (("allx", "ally", np.arange(first)), ("tx", "ty", tests)):
        dense, one_hot = _features(held[part]), _array(held, label)
        if one_hot.ndim != 2 or len(one_hot) != len(where) or dense.shape != (len(where), width):
            raise ValueError(f"{part} is {dense.shape} and {label} {one_hot.shape} for {len(where)} nodes")
        features[where], labels[where] = dense, one_hot.argmax(axis=1)
    if not 0 < training <= first:
        raise ValueError(f"y has {training} nodes and ally {first}")
    roles = np.full(nodes, UNUSED, np.int8)
    roles[:training], roles[tests] = TRAIN, TEST
    roles[training : min(training + VALIDATION_NODES, first)] = VALIDATION
    return node_graph(name, features, _pairs(held["graph"]), labels, roles)


def _pairs(neighbors: Any) -> Integers:
    """The edges of a dictionary node → list of its neighbors."""
    if not isinstance(neighbors, dict) or not all(isinstance(found, list) for found in neighbors.values()):
        raise ValueError("graph is no dictionary of lists")
    sizes = [len(found) for found in neighbors.values()]
    ends = [end for found in neighbors.values() for end in found]
    if not all(type(node) is int for node in (*neighbors, *ends)):
        raise ValueError("graph has nodes that are no whole numbers")
    return np.stack([np.repeat(np.array([*neighbors], np.int64), sizes), np.array(ends, np.int64)])


def _array(held: Mapping[str, Any], part: str) -> NDArray[Any]:
    found = held[part]
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iufb" or not found.ndim:
        raise ValueError(f"{part} is no array of numbers")
    return found


def _shape(matrix: Any) -> tuple[int, int]:
    state = vars(matrix) if isinstance(matrix, _Sparse) else {"shape": np.shape(matrix)}
    shape = state.get("_shape", state.get("shape"))
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(type(size) is int and size >= 0 for size in shape)):
        raise ValueError(f"node features have the shape {shape}, not (nodes, width)")
    return shape


def _features(matrix: Any) -> Floats:
    if isinstance(matrix, _Sparse):
        return _dense(vars(matrix), "data", "indices", "indptr", _shape(matrix))
    return np.asarray(_array({"node features": matrix}, "node features"), np.float32)


def _dense(arrays: Mapping[str, Any], data: str, indices: str, starts: str, shape: tuple[int, int]) -> Floats:
    """A matrix of a compressed one, by rows."""
    values, columns = _array(arrays, data), _array(arrays, indices)
    rows = _rows(_array(arrays, starts), shape[0], len(columns))
    if values.ndim != 1 or values.shape != columns.shape or columns.dtype.kind not in "iu":
        raise ValueError(f"{data} and {indices} have the shapes {values.shape} and {columns.shape}")
    if len(columns) and (columns.min() < 0 or columns.max() >= shape[1]):
        raise ValueError(f"{indices} has values outside 0 to {shape[1] - 1}")
    dense = np.zeros(shape, np.float32)
    np.add.at(dense, (np.repeat(np.arange(shape[0]), np.diff(rows)), columns), values)
    return dense


def _rows(starts: NDArray[Any], rows: int, entries: int) -> NDArray[Any]:
    """Where each row of a compressed matrix begins [rows + 1], checked."""
    sound = starts.dtype.kind in "iu" and starts.shape == (rows + 1,) and starts[0] == 0 and starts[-1] == entries
    if not sound or (np.diff(starts.astype(np.int64)) < 0).any():
        raise ValueError(f"the rows of a matrix of {rows} rows and {entries} entries do not follow one another")
    return starts.astype(np.int64)
