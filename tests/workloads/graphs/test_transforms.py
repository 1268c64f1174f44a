"""PyTorch Geometric's transforms by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.transforms import TRANSFORMS, parsed, transformed
from tests.made_graphs import graphs_of, path


def two_graphs(width: int = 1) -> Graphs:
    """A path of three nodes and a pair with an isolated node."""
    made = graphs_of(path(3), (3, [(0, 1)]), features=np.arange(6, dtype=np.float32)[:, None], labels=[1, 0])
    return replace(made, attributes=np.arange(6 * width, dtype=np.float32).reshape(3, 2, width))


def test_a_text_is_a_list_of_calls() -> None:
    assert parsed("") == [] == parsed("  ")
    assert parsed("Constant, OneHotDegree(3), AddRandomWalkPE(walk_length=8)") == [
        ("Constant", [], {}),
        ("OneHotDegree", [3], {}),
        ("AddRandomWalkPE", [], {"walk_length": 8}),
    ]


@pytest.mark.parametrize(
    "text", ["OneHotDegree(", "3", "Constant(open('x'))", "T.Constant", "Constant)(", "(" * 500, "Constant(**{1: 2})"]
)
def test_what_is_no_list_of_transforms_is_refused(text: str) -> None:
    with pytest.raises(WorkloadError, match="is no list of transforms; write names"):
        parsed(text)


def test_only_known_transforms_with_fitting_arguments_are_taken() -> None:
    with pytest.raises(WorkloadError, match=r"transform: RandomJitter is not allowed\. Allowed: AddRandomWalkPE, "):
        transformed(two_graphs(), "RandomJitter(0.1)", "S")
    with pytest.raises(WorkloadError, match="transform: OneHotDegree cannot be made: TypeError"):
        transformed(two_graphs(), "OneHotDegree", "S")
    with pytest.raises(WorkloadError, match="S, graph 0: transform OneHotDegree failed"):
        transformed(two_graphs(), "OneHotDegree(1)", "S")


def test_transforms_by_hand() -> None:
    degrees = transformed(two_graphs(), "OneHotDegree(2)", "S")
    assert degrees.features.tolist() == [
        [0, 0, 1, 0],
        [1, 0, 0, 1],
        [2, 0, 1, 0],
        [3, 0, 1, 0],
        [4, 0, 1, 0],
        [5, 1, 0, 0],
    ]
    walks = transformed(two_graphs(), "AddRandomWalkPE(2)", "S")
    # From the middle of a path the second step always leads back, from its ends in one of two cases.
    assert walks.features[:3].tolist() == [[0, 0, 0.5], [1, 0, 1], [2, 0, 0.5]]
    alone = transformed(two_graphs(), "RemoveIsolatedNodes", "S")
    assert alone.sizes.tolist() == [3, 2] and alone.labels.tolist() == [1, 0]
    assert alone.attributes.tolist() == two_graphs().attributes.tolist()
    loops = transformed(two_graphs(), "AddSelfLoops", "S")
    assert loops.edge_counts.tolist() == [5, 4] and loops.edge_width == 1


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("width", [0, 2])
def test_every_known_transform_gives_the_same_again(name: str, width: int) -> None:
    text = f"{name}(3)" if name in ("OneHotDegree", "AddRandomWalkPE") else name
    one, two = (transformed(two_graphs(width), text, "S") for _ in range(2))
    assert np.array_equal(one.features, two.features) and np.array_equal(one.edges, two.edges)
    assert one.edge_width == width and np.array_equal(one.attributes, two.attributes)
