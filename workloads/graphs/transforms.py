"""PyTorch Geometric's transforms by name, for workloads that read graphs from files.

Only those that draw nothing at random, and whose result is what models see: x, edges and edge_attr.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.option_types import Help

TRANSFORMS: Mapping[str, Mapping[str, object]] = {
    "AddRandomWalkPE": {"attr_name": None},  # None: the encodings join x
    "AddSelfLoops": {"attr": "edge_attr"},
    "Constant": {},
    "LargestConnectedComponents": {},
    "LocalDegreeProfile": {},
    "NormalizeFeatures": {},
    "OneHotDegree": {},
    "RemoveIsolatedNodes": {},
    "RemoveSelfLoops": {"attr": "edge_attr"},
}
"""Transforms that may be named, and the arguments that have another value here than in PyG."""

TransformOption = Annotated[
    str,
    Help(
        "PyTorch Geometric's transforms for every graph, one after another, as 'OneHotDegree(10), AddRandomWalkPE(8)'; "
        f"known: {', '.join(TRANSFORMS)}"
    ),
]


def parsed(text: str) -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Name, arguments and named arguments of each transform in a text; WorkloadError if it is none."""
    if not text.strip():
        return []
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
        return [_call(node) for node in tree.elts] if isinstance(tree, ast.Tuple) else []
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise WorkloadError(
            f"transform: {text!r} is no list of transforms; write names with numbers or texts as arguments, such as "
            "'OneHotDegree(10), AddRandomWalkPE(walk_length=8)'"
        ) from error


def _call(node: ast.expr) -> tuple[str, list[Any], dict[str, Any]]:
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call.func, ast.Name) or any(entry.arg is None for entry in call.keywords):
        raise ValueError
    name = call.func.id
    if name not in TRANSFORMS:
        raise WorkloadError(f"transform: {name} is not allowed. Allowed: {', '.join(TRANSFORMS)}")
    named = {str(entry.arg): ast.literal_eval(entry.value) for entry in call.keywords}
    return name, [ast.literal_eval(value) for value in call.args], named


def built(text: str) -> list[Any]:
    """The transforms that a text names; WorkloadError where an argument is missing or not allowed."""
    calls = parsed(text)
    if not calls:
        return []
    from raysim.workloads._torch_geometric import transforms

    found = []
    for name, values, named in calls:
        try:
            found.append(getattr(transforms, name)(*values, **{**TRANSFORMS[name], **named}))
        except Exception as error:  # of PyG's constructors
            raise WorkloadError(f"transform: {name} cannot be made: {_reason(error)}") from error
    return found


def transformed(graphs: Graphs, text: str, name: str) -> Graphs:
    """A set's graphs after the transforms of a text; WorkloadError, with ``name``, where a graph cannot go through."""
    steps = built(text)
    if not steps:
        return graphs
    from raysim.workloads.graphs.pyg_data import as_data, read_graphs

    items = []
    for number, item in enumerate(as_data(graphs)):
        for step in steps:
            try:
                item = step(item)
            except Exception as error:  # of PyG's transforms
                raise WorkloadError(
                    f"{name}, graph {number}: transform {type(step).__name__} failed: {_reason(error)}"
                ) from error
        items.append(item)
    return dataclasses.replace(read_graphs(items, name, {}), labels=graphs.labels)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
