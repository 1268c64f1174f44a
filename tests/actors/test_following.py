"""The thread that talks to Ray: what it asks of the driver, whose deaths it outlives, and how often it asks a head."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray.exceptions import OutOfMemoryError

from raysim.actors import cluster_probe, following
from raysim.actors.following import PROBE, RESTARTS, follow
from raysim.config.run_config import default_config


class Recorded:
    """In the place of a driver: the names of what is called, in order; every call gives its name.

    Args:
        error: raised by the call of ``run``.
    """

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._error = error

    def options(self, **_: Any) -> Recorded:
        return self

    def remote(self, *_: Any) -> Recorded:
        return self

    def __getattr__(self, name: str) -> Any:
        def called(*arguments: Any) -> str:
            self.calls.append((name, arguments))
            if name == "run" and self._error is not None:
                raise self._error
            return name

        return SimpleNamespace(remote=called)


@pytest.mark.usefixtures("ray_session")
def test_client_actors_begin_before_the_config_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network or data that were given take seconds to read."""
    driver: Any = Recorded(InterruptedError)
    monkeypatch.setattr("raysim.actors.driver.DriverActor", driver)
    monkeypatch.setattr(ray, "kill", lambda _: None)
    watch: Any = SimpleNamespace(own=object(), driver_starts=lambda: None)
    observer = SimpleNamespace(heard=frozenset(), preparing=lambda *_: None)
    config = default_config("fedavg")
    with pytest.raises(InterruptedError):
        follow(config, tmp_path, observer, lambda: False, lambda: False, watch)
    assert driver.calls == [("begin", ()), ("run", (config,))]


@pytest.mark.usefixtures("ray_session")
def test_a_driver_that_the_memory_monitor_killed_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(*_: Any, **__: Any) -> Any:
        raise OutOfMemoryError("Task was killed due to the node running low on memory.\nTop 10 memory users:\n1 ...")

    faults: list[str] = []
    monkeypatch.setattr("raysim.actors.driver.DriverActor", Recorded())
    monkeypatch.setattr(ray, "kill", lambda _: None)
    monkeypatch.setattr(ray, "wait", wait)
    watch: Any = SimpleNamespace(own=object(), driver_starts=lambda: None)
    observer = SimpleNamespace(heard=frozenset(), preparing=lambda *_: None, fault=faults.append)
    outcome = follow(default_config("fedavg"), tmp_path, observer, lambda: False, lambda: False, watch)
    assert len(faults) == RESTARTS - 1 and "a new one goes on from the last checkpoint" in faults[0]
    assert outcome.status == "failed" and outcome.message.endswith(
        "the driver died 3 times without finishing a round: Task was killed due to the node running low on memory."
    )


@pytest.mark.parametrize(("limit", "pause"), [(0.0, PROBE), (2.0, 0.5), (40.0, PROBE)])
def test_a_head_is_asked_several_times_within_the_limit(
    monkeypatch: pytest.MonkeyPatch, limit: float, pause: float
) -> None:
    asked, slept = list[str](), list[float]()

    def answers(head: str) -> bool:
        asked.append(head)
        return True

    monkeypatch.setattr(cluster_probe, "answers", answers)
    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=slept.append))
    watch: Any = SimpleNamespace(head="here", head_heard=lambda: None)
    following._listen_to_head(watch, lambda: len(asked) == 2, limit)
    assert asked == ["here"] * 2 and slept == [pause] * 2
