"""The text files of a TUDataset as flat arrays.

Read here and not by PyG, whose reader drops self-loops, adds up the attributes of repeated edges, takes a damaged file
as it is (nodes that are not there, edges between graphs, one-hot labels of any size), and takes a second where this
takes a tenth (its splitting of lines is Python). On sets without self-loops the results agree; the tests compare them.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.graphs.graph_set import Floats, Graphs, Integers, offsets, undirected
from workloads.graphs.tu_files import TuFiles

PUBLISHED_DEGREES = {"IMDB-BINARY": 135, "IMDB-MULTI": 88}
"""Largest degrees of sets without node features as published; a copy that lacks its largest graph keeps the width."""
LARGEST_FEATURES = 2 * 10**9
"""Bytes of a set's dense one-hot features beyond which it is refused."""


def read_graphs(files: TuFiles) -> tuple[Graphs, tuple[str, ...]]:
    """(graphs, names of their classes) of one set.

    Node features [nodes, F], the first of these that applies: one-hot node labels (value minus the smallest value,
    one block a column of labels, as PyG has it); the node attributes of the Letter sets; one-hot degrees from 0 up to
    the largest. Classes are numbered in the order of the labels' values, which are their names. All graphs and nodes
    are kept: isolated nodes, graphs without edges, single nodes. An edge that is there twice, or in both directions,
    is kept once; a self-loop stays. Attributes of edges are those of the file and then one-hot edge labels, as PyG has
    them with ``use_edge_attr``; of an edge that is there twice in one direction the first line counts.

    Raises:
        WorkloadError: a file that is missing, damaged, or does not agree with another; a graph without nodes.
    """
    indicator = _column(files, "graph_indicator")
    values, labels = np.unique(_column(files, "graph_labels"), return_inverse=True)
    count, nodes = len(labels), len(indicator)
    if nodes == 0 or indicator.min() < 1 or indicator.max() > count:
        seen = f"{indicator.min()} to {indicator.max()}" if nodes else "none"
        raise _damaged(files, f"graph_indicator names graphs {seen}, graph_labels has {count}")
    sizes = np.bincount(indicator - 1, minlength=count)
    if sizes.min() < 1:
        raise _damaged(files, f"graph {int(sizes.argmin()) + 1} has no node")
    order = np.argsort(indicator, kind="stable")  # nodes of a graph together, as they are in all published sets
    node_offsets = offsets(sizes)
    edges, edge_counts, attributes = _edges(files, indicator, order, node_offsets)
    none = np.zeros((nodes, 0), np.float32)
    graphs = Graphs(none, node_offsets, edges, offsets(edge_counts), labels.reshape(count), attributes=attributes)
    return replace(graphs, features=_features(files, graphs, order)), tuple(str(value) for value in values)


def read_classes(files: TuFiles) -> tuple[Integers, tuple[str, ...]]:
    """(class of every graph [G], names of the classes), as :func:`read_graphs` has them, and without pandas."""
    content = files.read("graph_labels")
    if content is None:
        raise _no_file(files, "graph_labels")
    try:
        values, labels = np.unique(np.array(content.split(), np.int64), return_inverse=True)
    except (ValueError, OverflowError) as error:
        raise _damaged(files, f"graph_labels does not hold a number a line ({error})") from error
    return labels.reshape(-1), tuple(str(value) for value in values)


def one_hot(values: Integers, width: int, name: str, part: str = "node_labels") -> Floats:
    """[len(values), width]: row i has its 1 in column values[i]."""
    if 4 * len(values) * width > LARGEST_FEATURES:
        what, rows = ("edge attributes", "lines") if part == "edge_labels" else ("node features", "nodes")
        raise WorkloadError(
            f"{name}: one-hot {what} would be {len(values)} {rows} x {width} columns, "
            f"{4 * len(values) * width / 1e9:.0f} GB; leave this set out"
        )
    hot = np.zeros((len(values), width), np.float32)
    hot[np.arange(len(values)), values] = 1.0
    return hot


def _edges(
    files: TuFiles, indicator: Integers, order: Integers, node_offsets: Integers
) -> tuple[Integers, Integers, Floats]:
    """(edges [2, E], edges of each graph [G], attributes [E, 2, D]) as ``Graphs`` has them, from A, nodes from 1."""
    pairs = _table(files, "A", np.int64, 2) - 1
    nodes = len(indicator)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= nodes):
        wrong = int(pairs.min() if pairs.min() < 0 else pairs.max()) + 1
        raise _damaged(files, f"A has an edge of node {wrong}, graph_indicator has nodes 1 to {nodes}")
    graphs = indicator[pairs] - 1
    apart = np.flatnonzero(graphs[:, 0] != graphs[:, 1])
    if len(apart):
        one, two = (pairs[apart[0]] + 1).tolist()
        raise _damaged(files, f"A has an edge between nodes {one} and {two}, which are in different graphs")
    places = np.empty(nodes, np.int64)
    places[order] = np.arange(nodes)
    ends, attributes = undirected(places[pairs].T, nodes, _edge_attributes(files, len(pairs)))
    owners = np.searchsorted(node_offsets, ends[0], side="right") - 1
    return ends - node_offsets[owners], np.bincount(owners, minlength=len(node_offsets) - 1), attributes


def _edge_attributes(files: TuFiles, lines: int) -> Floats | None:
    """What each line of A has [lines, D]: its attributes, then its labels, one-hot; None: the set has neither."""
    if not lines:
        return None
    blocks: list[Floats] = []
    if files.read("edge_attributes") is not None:
        blocks.append(_finite(files, "edge_attributes", lines, "A"))
    if files.read("edge_labels") is not None:
        blocks.append(_one_hot_columns(files, "edge_labels", lines, "A"))
    return np.concatenate(blocks, axis=1) if blocks else None


def _features(files: TuFiles, graphs: Graphs, order: Integers) -> Floats:
    nodes = len(order)
    if files.read("node_labels") is not None:
        return _one_hot_columns(files, "node_labels", nodes, "graph_indicator", order)
    if files.name.startswith("Letter-"):
        return np.ascontiguousarray(_finite(files, "node_attributes", nodes, "graph_indicator")[order])
    degrees = graphs.degrees()
    return one_hot(degrees, max(int(degrees.max()), PUBLISHED_DEGREES.get(files.name, 0)) + 1, files.name)


def _one_hot_columns(
    files: TuFiles, part: str, lines: int, owner: str, order: Integers | slice = slice(None)
) -> Floats:
    """Columns of labels, one-hot, value minus the smallest value: one block a column, rows in this order."""
    labels = _table(files, part, np.int64)
    _same_length(files, part, len(labels), lines, owner)
    labels = labels[order] - labels.min(axis=0)
    blocks = [one_hot(column, int(column.max()) + 1, files.name, part) for column in labels.T]
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def _finite(files: TuFiles, part: str, lines: int, owner: str) -> Floats:
    """A file of finite numbers [lines, columns]."""
    values = _table(files, part, np.float32)
    _same_length(files, part, len(values), lines, owner)
    if not np.isfinite(values).all():
        raise _damaged(files, f"{part} has values that are no finite numbers")
    return values


def _column(files: TuFiles, part: str) -> Integers:
    column: Integers = _table(files, part, np.int64, 1)[:, 0]
    return column


def _table(files: TuFiles, part: str, kind: type[np.generic], columns: int = 0) -> NDArray[Any]:
    """All numbers of NAME_PART.txt, [lines, columns]; 0: any number of columns."""
    import pandas

    content = files.read(part)
    if content is None:
        raise _no_file(files, part)
    if not content.strip():
        return np.zeros((0, columns or 1), kind)
    try:
        table = pandas.read_csv(io.BytesIO(content), header=None, skipinitialspace=True, dtype=kind).to_numpy()
    except (ValueError, OverflowError) as error:  # pandas' own errors are ValueErrors
        raise _damaged(files, f"{part} does not hold numbers in columns ({' '.join(str(error).split())})") from error
    if columns and table.shape[1] != columns:
        raise _damaged(files, f"{part} has {table.shape[1]} columns where {columns} are expected")
    return table


def _no_file(files: TuFiles, part: str) -> WorkloadError:
    hint = "; sets for regression have no classes" if part == "graph_labels" else ""
    return WorkloadError(
        f"{files.name}: there is no {files.name}_{part}.txt in {files.place}{hint}. Copy the set again, or choose "
        "another one"
    )


def _same_length(files: TuFiles, part: str, lines: int, wanted: int, owner: str) -> None:
    if lines != wanted:
        raise _damaged(files, f"{part} has {lines} lines, {owner} {wanted}")


def _damaged(files: TuFiles, what: str) -> WorkloadError:
    return WorkloadError(f"{files.name}: {what} (in {files.place}). Copy or download the set again")
