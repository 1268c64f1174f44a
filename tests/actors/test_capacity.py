"""How many client actors fit on a cluster, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from raysim.actors.capacity import less_crowded, place, room
from raysim.errors import PlacementError
from tests.small_runs import with_engine

THIRD = 1 / 3


@pytest.mark.parametrize(
    ("engine", "nodes", "useful", "expected"),
    [
        ({}, [{"CPU": 4.0}], 10, 4),
        ({}, [{"CPU": 4.0}], 3, 3),  # no more than can be busy
        ({"cpus_per_client": 0.5}, [{"CPU": 4.0}], 10, 8),
        ({"cpus_per_client": 3}, [{"CPU": 4.0}, {"CPU": 5.0}], 10, 2),  # an actor does not span nodes
        ({"gpus_per_client": THIRD}, [{"CPU": 16.0, "GPU": 2.0}], 10, 6),
        ({"gpus_per_client": 0.333}, [{"CPU": 16.0, "GPU": 1.0}], 10, 3),
        ({"gpus_per_client": 0.5}, [{"CPU": 3.0, "GPU": 2.0}, {"CPU": 16.0}], 10, 3),
        ({"cpus_per_client": 0, "actors": 20}, [{"CPU": 1.0}], 3, 20),  # nothing asked for always fits
        ({"cpus_per_client": 0}, [{"CPU": 2.0}], 3, 2),  # but without being asked not more processes than cores
    ],
)
def test_how_many_actors_fit(engine: dict[str, Any], nodes: list[dict[str, float]], useful: int, expected: int) -> None:
    assert place(with_engine(**engine).engine, nodes, useful).actors == expected


@pytest.mark.parametrize(
    ("engine", "nodes", "message"),
    [
        ({"gpus_per_client": 0.5}, [{"CPU": 4.0}], r"asks for 0.5 GPU, but .* has 0, .* --engine.gpus_per_client \(0 "),
        ({"cpus_per_client": 3}, [{"CPU": 2.0}, {"CPU": 2.0}], "asks for 3 CPU, but .* largest node has 2"),
        ({"gpus_per_client": 2}, [{"CPU": 9.0, "GPU": 1.0}] * 2, "asks for 2 GPU, but .* largest node has 1"),
        ({"actors": 5}, [{"CPU": 2.0}, {"CPU": 2.0}], "actors 5 cannot be met, only 4 fit: .* 4 CPU on 2 node"),
        ({"gpus_per_client": 1}, [{"GPU": 1.0}, {"CPU": 8.0}], "only 0 fit"),
    ],
)
def test_what_can_never_be_given_is_an_error(
    engine: dict[str, Any], nodes: list[dict[str, float]], message: str
) -> None:
    with pytest.raises(PlacementError, match=message):
        place(with_engine(**engine).engine, nodes, 10)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"CPU": 2}, 3),  # one on the first, two on the second
        ({"CPU": 5}, 0),  # eight in all, but no node has five
        ({"CPU": 1, "GPU": THIRD}, 3),
        ({"GPU": 2}, 0),
    ],
)
def test_how_often_something_fits_on_nodes(wanted: dict[str, float], expected: int) -> None:
    assert room([{"CPU": 3.0, "GPU": 1.0}, {"CPU": 4.0}], wanted) == expected


@pytest.mark.parametrize(
    ("engine", "actors", "expected"),
    [
        ({"gpus_per_client": 0.25}, 8, (0.5, 0)),
        ({"gpus_per_client": 0.25, "actors": 6}, 6, (0.5, 3)),
        ({"gpus_per_client": 0.333}, 3, (1.0, 0)),
        ({"gpus_per_client": 0.2}, 5, (0.5, 0)),
        ({"gpus_per_client": 0.5, "actors": 1}, 1, (1.0, 1)),  # twice the memory, with as many actors
        ({"gpus_per_client": 1}, 4, None),
        ({}, 5, (0.0, 2)),
        ({}, 1, None),
    ],
)
def test_half_as_many_to_a_gpu(engine: dict[str, Any], actors: int, expected: tuple[float, int] | None) -> None:
    found = less_crowded(with_engine(**engine), actors)
    assert (found and (found.engine.gpus_per_client, found.engine.actors)) == expected
