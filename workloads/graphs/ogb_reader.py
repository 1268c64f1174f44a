"""The raw files of a graph property set of the Open Graph Benchmark (Hu et al. 2020, arXiv 2005.00687) as flat arrays.

Read here, as the package ``ogb`` downloads what is not there and unpickles what it has processed. All files are tables
without a header, ``raw/NAME.csv.gz``, with the rows of one graph behind those of another.
"""

from __future__ import annotations

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Floats, Graphs, Integers, of_pairs, offsets
from raysim.workloads.graphs.set_files import LARGEST_FEATURES, MAX_FILE_BYTES, SetFiles, one_hot

TRAIN, VALIDATION, TEST = range(3)
SPLIT_FILES = ("train", "valid", "test")


def read_labels(files: SetFiles, target: int) -> tuple[Integers, tuple[str, ...]]:
    """(class of every graph [G], −1 where it has no label; names of the classes) by one column of graph-label.

    Raises:
        WorkloadError: there is no such column, or it does not hold classes.
    """
    table = files.table("raw/graph-label", np.float64)
    if target >= table.shape[1]:
        raise WorkloadError(
            f"{files.name}: target = {target}, but graph-label has columns 0 to {table.shape[1] - 1}; set target to one"
        )
    labeled = np.flatnonzero(~np.isnan(table[:, target]))
    values = table[labeled, target]
    if not len(values) or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise WorkloadError(
            f"{files.name}: column {target} of graph-label does not hold classes; sets for regression are not read, "
            "take another set or another target"
        )
    names, labels = np.unique(values, return_inverse=True)
    classes = np.full(len(table), -1)
    classes[labeled] = labels.reshape(-1)
    return classes, tuple(f"{name:.0f}" for name in names)


def read_split(files: SetFiles, graphs: int) -> Integers:
    """Role of each graph by the published split [graphs]: TRAIN, VALIDATION or TEST."""
    found = sorted(path.name for path in (files.place / "split").glob("*") if path.is_dir())
    if len(found) != 1:
        raise WorkloadError(
            f"{files.name}: {files.place / 'split'} has {', '.join(found) or 'no folder'}, and one published split is "
            "expected there, as split/scaffold. Copy the set again, or set split to drawn"
        )
    parts = [files.table(f"split/{found[0]}/{part}", np.int64, 1)[:, 0] for part in SPLIT_FILES]
    numbers = np.concatenate(parts)
    if not np.array_equal(np.sort(numbers), np.arange(graphs)):
        raise files.damaged(f"split/{found[0]} does not have each of the graphs 0 to {graphs - 1} in one part, once")
    return np.repeat(range(len(parts)), [len(part) for part in parts])[np.argsort(numbers)]


def read_graphs(files: SetFiles, labels: Integers, as_kinds: bool) -> Graphs:
    """All graphs of a set, with these labels [G].

    An edge that is there in one direction, in both, or more than once is one undirected edge; its attributes are those
    of the first line of its direction. Nodes without features have a single 1.

    Args:
        files: the set.
        labels: [G].
        as_kinds: turn columns of whole numbers (kinds of atoms, say) into one-hot blocks; else they stay numbers.

    Raises:
        WorkloadError: a file that is missing, damaged, or does not agree with another; a graph without nodes.
    """
    ends = files.table("raw/edge", np.int64, 2)
    sizes = _counts(files, "raw/num-node-list", len(labels))
    counts = _counts(files, "raw/num-edge-list", len(labels))
    if sizes.min() < 1:
        raise files.damaged(f"graph {int(sizes.argmin())} has no node")
    if counts.sum() != len(ends):
        raise files.damaged(f"edge has {len(ends)} lines, num-edge-list adds up to {counts.sum()}")
    nodes = int(sizes.sum())
    if 4 * nodes > LARGEST_FEATURES:
        raise files.damaged(f"num-node-list adds up to {nodes} nodes, more than fit into memory")
    owners = np.repeat(np.arange(len(labels)), counts)
    wrong = np.flatnonzero(((ends < 0) | (ends >= sizes[owners][:, None])).any(axis=1))
    if len(wrong):
        graph = int(owners[wrong[0]])
        raise files.damaged(f"graph {graph} has an edge {ends[wrong[0]].tolist()}, and nodes 0 to {sizes[graph] - 1}")
    node_offsets = offsets(sizes)
    features = _features(files, "raw/node-feat", nodes, "num-node-list", as_kinds)
    return of_pairs(
        np.ones((nodes, 1), np.float32) if features is None else features,
        node_offsets,
        (ends + node_offsets[owners][:, None]).T,
        labels,
        _features(files, "raw/edge-feat", len(ends), "edge", as_kinds),
    )


def _counts(files: SetFiles, part: str, graphs: int) -> Integers:
    counts: Integers = files.table(part, np.int64, 1, graphs, "graph-label")[:, 0]
    if not graphs or counts.min() < 0 or counts.max() > MAX_FILE_BYTES:
        raise files.damaged(f"{part} does not hold counts from 0 to {MAX_FILE_BYTES}")
    return counts


def _features(files: SetFiles, part: str, lines: int, owner: str, as_kinds: bool) -> Floats | None:
    """Features of nodes or edges [lines, width]; None: the set has none."""
    if not lines or not (files.place / f"{part}.csv.gz").exists():
        return None
    table = files.finite(part, np.float64, lines, owner)
    kinds = (table == np.floor(table)).all(axis=0) & (table.min(axis=0) >= 0) & as_kinds
    widths = np.where(kinds, table.max(axis=0) + 1, 0)
    return one_hot(table, widths, files.name, part, "set features to numbers, or leave this set out")
