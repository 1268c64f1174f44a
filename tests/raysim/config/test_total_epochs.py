"""A run's length in local epochs or in rounds: the later one holds, and a config always has both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from raysim.config.command_line import given_config
from raysim.config.run_config import build, to_dict
from raysim.config.sections import Schedule
from raysim.errors import ConfigError
from raysim.running.simulation import run

FILE = {"schedule.rounds": 10, "schedule.epochs": 42, "schedule.local_epochs": 4}


@pytest.mark.parametrize(
    ("layers", "rounds", "epochs"),
    [
        ([{"schedule.epochs": 42, "schedule.local_epochs": 4}], 10, 42),
        ([{"schedule.epochs": "42", "schedule.local_epochs": "4"}], 10, 42),  # as text, from the command line
        ([{"schedule.rounds": 30}, {"schedule.epochs": 41}], 20, 41),
        ([{"schedule.epochs": 41}, {"schedule.rounds": 30}], 30, 0),
        ([FILE], 10, 42),
        ([FILE, {"schedule.local_epochs": 5}], 8, 42),
        ([FILE, {"schedule.rounds": 40}], 40, 0),
        ([FILE, {"schedule.epochs": 0}], 10, 0),
        ([{"schedule.rounds": 10, "schedule.epochs": 0}, {"schedule.epochs": 7}], 3, 7),
        # A workload that brings rounds of its own.
        ([{"workload.name": "tudataset", "model.name": "gin"}, {"schedule.epochs": 33}], 33, 33),
    ],
)
def test_the_later_one_holds(layers: list[Mapping[str, object]], rounds: int, epochs: int) -> None:
    config = build([{"method.name": "fedavg"}, *layers])
    assert (config.schedule.rounds, config.schedule.epochs) == (rounds, epochs)
    assert given_config(to_dict(config)) == config


@pytest.mark.parametrize(
    "layers",
    [
        [{"schedule.epochs": 42, "schedule.rounds": 20}],
        [{**FILE, "schedule.rounds": 11}],
        # Of a value that a later layer replaces only this comparison sees that it is none.
        [{**FILE, "schedule.local_epochs": 0}, {"schedule.local_epochs": 5}],
        [{**FILE, "schedule.local_epochs": "many"}, {"schedule.local_epochs": 5}],
    ],
)
def test_a_contradiction_is_refused(layers: list[Mapping[str, object]]) -> None:
    with pytest.raises(ConfigError, match=r"schedule\.rounds: \d+ contradicts schedule\.epochs 42, .* Give one"):
        build(layers)


def test_a_schedule_made_by_hand_must_agree() -> None:
    config = build([{"method.name": "fedavg"}])
    with pytest.raises(ConfigError, match="contradicts"):
        type(config)(config.method, config.workload, config.model, schedule=Schedule(epochs=42, local_epochs=4))


def test_what_is_left_over_is_not_trained(tmp_path: Path) -> None:
    options = {"method.name": "fedavg", "model.name": "logistic", "workload.limit": 100, "workload.clients": 2}
    length = {"schedule.epochs": 11, "schedule.local_epochs": 4, "engine.backend": "inline"}
    rounds = run(build([options | length | {"output": str(tmp_path / "run")}])).rounds
    assert rounds["local_epochs"].tolist() == [4, 4]
    assert rounds["epochs_total"].tolist() == [4, 8]
