"""Ray's start: passing errors are tried again, and its new node is asked for when that is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from raysim.actors import cluster_probe, ray_start, start_retry
from raysim.config.sections import Engine
from raysim.errors import PlacementError

SLOW = "The current node timed out during startup. This could happen because some of the raylet failed to startup"


@pytest.mark.parametrize(
    ("errors", "address", "tries"),
    [
        ([SLOW], "local", 2),
        ([SLOW, SLOW, f"At last. {SLOW}"], "local", 3),
        (["no port is free"], "local", 1),
        (["Starting Ray client server failed. See ray_client_server_23000.err"] * 2, "ray://127.0.0.1:1", 3),
        (["Could not connect"], "ray://127.0.0.1:1", 1),
    ],
)
def test_a_ray_that_fails_in_passing_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, errors: list[str], address: str, tries: int
) -> None:
    import ray

    tried: list[str] = []

    def init(**options: Any) -> Any:
        tried.append(options["address"])
        if errors:
            raise Exception(errors.pop(0))
        return SimpleNamespace(dashboard_url=None)

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(cluster_probe, "check", lambda address: None)
    monkeypatch.setattr(start_retry, "PAUSE", 0.0)
    fails = len(errors) == tries
    if fails:
        with pytest.raises(PlacementError, match=errors[-1][:20]):
            ray_start.start_ray(Engine(address=address))
    else:
        assert ray_start.start_ray(Engine(address=address)) == (address == "local", "")
    assert tried == [address] * tries


def test_ray_is_asked_for_its_node_when_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own call, made before, sleeps for a second."""
    from ray._private import services, state

    class Nodes:
        """In the place of Ray's table of nodes, where a new one appears at the third look."""

        looks = 0

        def _initialize_global_state(self, options: object) -> None:
            assert options == "options of an address"

        def node_table(self) -> list[dict[str, str]]:
            Nodes.looks += 1
            return [{"NodeID": "another"}, {"NodeID": "new"}][: 1 + (Nodes.looks > 2)]

    asked: list[tuple[int, str, str]] = []
    monkeypatch.setattr(state, "GlobalState", Nodes)
    monkeypatch.setattr(services, "_get_gcs_client_options", lambda address: f"options of {address}")
    monkeypatch.setattr(services, "get_node", lambda address, node: asked.append((Nodes.looks, address, node)))
    given = services.get_node
    with ray_start.nodes_seen_at_once():
        services.get_node("an address", "new")
        assert asked == [(3, "an address", "new")]
        monkeypatch.setattr(ray_start, "UP", 0.0)
        services.get_node("an address", "never")
    assert asked[-1][2] == "never" and services.get_node is given
