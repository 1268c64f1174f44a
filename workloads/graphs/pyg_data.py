"""PyTorch Geometric's ``Data`` as flat arrays, checked, and flat arrays as ``Data``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.given.given_data import MAX_CLASSES
from raysim.workloads.given.items import untensored
from raysim.workloads.given.labels import as_classes, is_one_hot
from raysim.workloads.graphs.graph_set import Floats, Graphs, Integers, of_pairs, offsets

if TYPE_CHECKING:
    from torch_geometric.data import Data

NOT_USED = "the graphs' edge weights are not used: models see node features, edges, edge_attr and labels"

NODES = (
    "it is one graph, and raysim.split cuts lists of graphs; if its nodes have the labels, save it as FILE.npz with "
    "node_features, node_labels, edges (edge_index.T), and train_masks, val_masks and test_masks [splits, nodes], and "
    "take workload='nodes' with "
    "path=FILE.npz (docs/data.md)"
)
"""Advice for a data set for the classification of nodes."""


def read_graphs(data: object, where: str, notes: dict[str, None]) -> Graphs:
    """One client's graphs as flat arrays, checked.

    Args:
        data: a list of PyTorch Geometric's ``Data``, or a data set of it.
        where: whose they are, for errors.
        notes: takes what a user should know of them, once.

    Raises:
        WorkloadError: with ``where``, what is wrong with them.
    """
    items: Any = data
    if not (hasattr(items, "__len__") and hasattr(items, "__getitem__")) or isinstance(items, Mapping | str):
        raise WorkloadError(f"{where}: {type(data).__name__} is no list of graphs; give a list of PyG's Data")
    if not len(items):
        raise WorkloadError(f"{where}: it has no graph; leave it out or give it at least one")
    features, pairs, attributes, labels = [], [], [], []
    for number in range(len(items)):
        item, what = items[number], f"{where}, graph {number}"
        features.append(_features(item, what))
        pairs.append(_edges(item, len(features[-1]), what))
        attributes.append(_attributes(item, pairs[-1].shape[1], what))
        labels.append(_label(item, what))
        first, last = ((features[at].shape[1], attributes[at].shape[1]) for at in (0, -1))
        check_widths(last, first, what, "graph 0")
        if getattr(item, "edge_weight", None) is not None:
            notes[NOT_USED] = None
    starts = offsets(np.array([len(own) for own in features]))
    numbered = np.concatenate([own + start for own, start in zip(pairs, starts[:-1], strict=True)], axis=1)
    values = np.concatenate(attributes)
    given = values if values.shape[1] else None
    return of_pairs(np.concatenate(features), starts, numbered, _labels(labels, where), given)


def check_widths(own: tuple[int, int], other: tuple[int, int], where: str, others: str) -> None:
    """WorkloadError unless graphs have equally many features of a node, and attributes of an edge, as others."""
    words = "nodes have {} features", "edges have {} attributes (edge_attr)"
    for what, here, there in zip(words, own, other, strict=True):
        if here != there:
            raise WorkloadError(
                f"{where}: {what.format(here)}, and {there} in {others}; all graphs of a client must have one width"
            )


def labels_of(data: Any) -> Integers | Floats:
    """The labels of a data set of graphs [graphs] or [graphs, D]; WorkloadError where one has none.

    One graph whose nodes have the labels is none: its error says what to use.
    """
    try:
        first = data[0]
    except (KeyError, IndexError, TypeError, AttributeError):  # a Data by itself
        first = data
    if first is data or getattr(first, "train_mask", None) is not None:
        raise WorkloadError(f"data: {NODES}")
    return _labels([_label(data[number], f"data, graph {number}") for number in range(len(data))], "data")


def as_graph_classes(labels: NDArray[Any]) -> str:
    """How to give every graph its class, where labels are whole numbers [graphs], or one-hot [graphs, C].

    Empty for other labels, and for classes.
    """
    if not as_classes(labels):
        return ""
    return f"every graph its class, graph.y = graph.y.{'argmax()' if is_one_hot(labels) else 'long()'}"


def as_data(graphs: Graphs) -> Iterator[Data]:
    """Each graph as ``Data`` with x, edge_index (both directions), edge_attr (where edges have attributes) and y."""
    import torch

    from raysim.workloads._torch_geometric import Data
    from raysim.workloads.graphs.batch import collate

    for number in range(len(graphs)):
        one = graphs.subset(np.array([number]))
        batch = collate(one)
        y = torch.from_numpy(one.labels)
        yield Data(x=batch.x, edge_index=batch.edge_index, edge_attr=batch.edge_attr, y=y)


def _array(item: Any, name: str, where: str, advice: str) -> Any:
    value = getattr(item, name, None)
    if value is None:
        raise WorkloadError(f"{where}: it has no {name}; {advice}")
    return np.asarray(untensored(value))


def _features(item: Any, where: str) -> Any:
    x = _array(item, "x", where, "give node features, a column of ones for instance (PyG's transform Constant)")
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or not x.size or x.dtype.kind not in "fiub" or not np.isfinite(x).all():
        raise WorkloadError(f"{where}: x must be finite numbers [nodes, features], and is {x.dtype} {x.shape}")
    return x.astype(np.float32)


def _edges(item: Any, nodes: int, where: str) -> Integers:
    """Every edge in both directions [2, edges]."""
    directed = _array(item, "edge_index", where, "give its edges as integers [2, edges]")
    if directed.ndim != 2 or len(directed) != 2 or directed.dtype.kind not in "iu":
        raise WorkloadError(
            f"{where}: edge_index must be integers [2, edges], and is {directed.dtype} {directed.shape}"
        )
    wrong = directed[(directed < 0) | (directed >= nodes)]
    if len(wrong):
        raise WorkloadError(f"{where}: edge_index names node {wrong[0]}, and there are nodes 0 to {nodes - 1}")
    found: Integers = directed.astype(np.int64)
    keys = np.unique(found[0] * nodes + found[1])
    first, second = np.divmod(keys, nodes)
    if not np.array_equal(np.sort(second * nodes + first), keys):
        raise WorkloadError(
            f"{where}: an edge is there in one direction only; the models are for undirected graphs: apply PyG's "
            "transform ToUndirected, which adds the other directions"
        )
    return found


def _attributes(item: Any, edges: int, where: str) -> Floats:
    """[edges, D]; D = 0: it has none."""
    if getattr(item, "edge_attr", None) is None:
        return np.zeros((edges, 0), np.float32)
    values = np.asarray(untensored(item.edge_attr))
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != edges or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise WorkloadError(
            f"{where}: edge_attr must be finite numbers [{edges} edges, attributes], and is {values.dtype} "
            f"{values.shape}"
        )
    return values.astype(np.float32)


def _labels(labels: list[Any], where: str) -> Integers | Floats:
    """All graphs' labels as one array; WorkloadError where they are not alike."""
    for number, label in enumerate(labels):
        if (label.dtype, label.shape) != (labels[0].dtype, labels[0].shape):
            raise WorkloadError(
                f"{where}, graph {number}: y is {label.dtype} {label.shape}, and {labels[0].dtype} "
                f"{labels[0].shape} in graph 0; give all graphs a class (a whole number) or as many numbers (float)"
            )
    return np.stack(labels)


def _advice(y: NDArray[Any]) -> str:
    """Advice where one graph's y is a one-hot class."""
    advice = as_graph_classes(y.reshape(1, -1)) if y.size > 1 else ""
    return f"; if it is one-hot, give {advice}" if advice else ""


def _label(item: Any, where: str) -> Any:
    """A graph's class as int64 [], or what regression is to predict of it as float32 [] or [D]."""
    y = _array(item, "y", where, "give it one label, its class from 0, or float numbers [1, D] to be predicted")
    if y.dtype.kind == "f":
        if not y.size or not np.isfinite(y).all() or (y.size > 1 and (y.ndim != 2 or len(y) != 1)):
            raise WorkloadError(
                f"{where}: float y must be finite and one number or [1, D], and is {y.dtype} {y.shape}{_advice(y)}"
            )
        return y.astype(np.float32).reshape(y.shape[1:] if y.ndim == 2 else ())
    if y.size != 1 or y.dtype.kind not in "iub" or not 0 <= int(y.reshape(-1)[0]) < MAX_CLASSES:
        raise WorkloadError(
            f"{where}: y must be one whole number, the graph's class from 0 to at most {MAX_CLASSES - 1}, and is "
            f"{f'{y.item()} ' if y.size == 1 else ''}{y.dtype} {y.shape}{_advice(y)}"
        )
    return y.astype(np.int64).reshape(())
