"""PyTorch Geometric's ``Data`` as flat arrays, checked, and flat arrays as ``Data``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workloads.errors import WorkloadError
from workloads.given import MAX_CLASSES
from workloads.graphs.graph_set import Floats, Graphs, Integers, offsets, undirected
from workloads.own_items import untensored

if TYPE_CHECKING:
    from torch_geometric.data import Data

NOT_USED = "the graphs' edge weights are not used: models see node features, edges, edge_attr and labels"


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
    features, edges, attributes, labels = [], [], [], []
    for number in range(len(items)):
        item, what = items[number], f"{where}, graph {number}"
        features.append(_features(item, what))
        own_edges, own_attributes = _edges(item, len(features[-1]), what)
        edges.append(own_edges)
        attributes.append(own_attributes)
        labels.append(_label(item, what))
        if features[-1].shape[1] != features[0].shape[1]:
            raise WorkloadError(
                f"{what}: nodes have {features[-1].shape[1]} features, and {features[0].shape[1]} in graph 0; all "
                "graphs of a client must have one width"
            )
        if attributes[-1].shape[2] != attributes[0].shape[2]:
            raise WorkloadError(
                f"{what}: edges have {attributes[-1].shape[2]} attributes (edge_attr), and "
                f"{attributes[0].shape[2]} in graph 0; all graphs of a client must have one width"
            )
        if getattr(item, "edge_weight", None) is not None:
            notes[NOT_USED] = None
    return Graphs(
        np.concatenate(features),
        offsets(np.array([len(own) for own in features])),
        np.concatenate(edges, axis=1),
        offsets(np.array([own.shape[1] for own in edges])),
        _labels(labels, where),
        attributes=np.concatenate(attributes),
    )


def labels_of(data: Any) -> Integers | Floats:
    """The labels of a data set of graphs [graphs] or [graphs, D]; WorkloadError where one has none."""
    return _labels([_label(data[number], f"data, graph {number}") for number in range(len(data))], "data")


def as_data(graphs: Graphs) -> Iterator[Data]:
    """Each graph as ``Data`` with x, edge_index (both directions), edge_attr (where edges have attributes) and y."""
    import torch

    from workloads._torch_geometric import Data

    for number in range(len(graphs)):
        one = graphs.subset(np.array([number]))
        apart = one.edges[0] != one.edges[1]
        both = np.concatenate([one.edges, one.edges[::-1, apart]], axis=1)
        attributes = np.concatenate([one.attributes[:, 0], one.attributes[apart, 1]]) if one.edge_width else None
        yield Data(
            x=torch.from_numpy(one.features),
            edge_index=torch.from_numpy(both),
            edge_attr=None if attributes is None else torch.from_numpy(attributes),
            y=torch.from_numpy(one.labels),
        )


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


def _edges(item: Any, nodes: int, where: str) -> tuple[Integers, Floats]:
    """Each undirected edge once [2, edges], first end ≤ second end, and its attributes [edges, 2, D]."""
    directed = _array(item, "edge_index", where, "give its edges as integers [2, edges]")
    if directed.ndim != 2 or len(directed) != 2 or directed.dtype.kind not in "iu":
        raise WorkloadError(
            f"{where}: edge_index must be integers [2, edges], and is {directed.dtype} {directed.shape}"
        )
    wrong = directed[(directed < 0) | (directed >= nodes)]
    if len(wrong):
        raise WorkloadError(f"{where}: edge_index names node {wrong[0]}, and there are nodes 0 to {nodes - 1}")
    directed = directed.astype(np.int64)
    keys = np.unique(directed[0] * nodes + directed[1])
    first, second = np.divmod(keys, nodes)
    if not np.array_equal(np.sort(second * nodes + first), keys):
        raise WorkloadError(
            f"{where}: an edge is there in one direction only; the models are for undirected graphs: apply PyG's "
            "transform ToUndirected, which adds the other directions"
        )
    return undirected(directed, nodes, _attributes(item, directed.shape[1], where))


def _attributes(item: Any, edges: int, where: str) -> Floats | None:
    if getattr(item, "edge_attr", None) is None:
        return None
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


def _label(item: Any, where: str) -> Any:
    """A graph's class as int64 [], or what regression is to predict of it as float32 [] or [D]."""
    y = _array(item, "y", where, "give it one label, its class from 0, or float numbers [1, D] to be predicted")
    if y.dtype.kind == "f":
        if not y.size or not np.isfinite(y).all() or (y.size > 1 and (y.ndim != 2 or len(y) != 1)):
            raise WorkloadError(f"{where}: float y must be finite and one number or [1, D], and is {y.dtype} {y.shape}")
        return y.astype(np.float32).reshape(y.shape[1:] if y.ndim == 2 else ())
    if y.size != 1 or y.dtype.kind not in "iub" or not 0 <= int(y.reshape(-1)[0]) < MAX_CLASSES:
        raise WorkloadError(
            f"{where}: y must be one whole number, the graph's class from 0 to at most {MAX_CLASSES - 1}, and is "
            f"{y.reshape(-1)[0] if y.size == 1 else ''} {y.dtype} {y.shape}"
        )
    return y.astype(np.int64).reshape(())
