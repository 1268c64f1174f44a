"""What an actor has ready before its first client task."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import ray

from raysim.actors.client import Client, Starter
from raysim.config.run_config import build
from raysim.engine.load_federation import load_federation
from raysim.exchange.profile_marks import clock
from raysim.workloads.parallel_map import Sequential


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("model", "built"), [("logistic", 1), ("alexnet", 0)])
def test_the_model_is_built_beside_the_drivers(model: str, built: int) -> None:
    """And one that cannot be built (AlexNet for images of 8x8) is the driver's to tell."""
    config = build([{"method.name": "fedavg", "workload.name": "digits", "model.name": model}])
    client = Client(1, 0, clock())  # in this process: another would take longer to import torch than all of this
    assert client.prepare(config, load_federation(config, Sequential())) == ray.get_runtime_context().get_node_id()
    assert len(client._worker._models) == built


@pytest.mark.usefixtures("ray_session")
def test_libraries_are_imported_before_the_data_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_large_library.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    Client(1, 0, clock(), ("a_large_library",))
    assert sys.modules.pop("a_large_library", None) is not None


def test_every_actor_is_told_of_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[object, ...]] = []

    class Recorded:
        """In the place of Ray's handle of the class."""

        @classmethod
        def options(cls, **_: object) -> type[Recorded]:
            return cls

        @staticmethod
        def remote(*arguments: object) -> None:
            told.append(arguments)

    monkeypatch.setattr(Starter, "actor", Recorded)
    starter = Starter(build([{"method.name": "fedavg"}]).engine, ["a_library"])
    starter.start(0)
    starter.start(0, life=2)
    assert [arguments[-1] for arguments in told] == [("a_library",)] * 2
