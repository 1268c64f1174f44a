"""Columns of the rounds table as measures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import raysim
from raysim import columns
from raysim.errors import ConfigError
from raysim.results import measures
from raysim.results.result import comparable
from tests.small_runs import small_run


def value(frame: pd.DataFrame, name: str) -> float | None:
    return measures.find(name).of(frame)


def test_the_best_loss_is_the_smallest_and_the_best_accuracy_the_largest() -> None:
    frame = pd.DataFrame(
        {"accuracy": [0.9, None, 0.7], "loss": [1.5, 0.4, 0.8], "client_accuracy_std": [0.1, 0.2, 0.3]}
    )
    assert value(frame, "best_loss") == 0.4 and value(frame, "loss") == 0.8
    assert value(frame, "best_accuracy") == 0.9 and value(frame, "accuracy") == 0.7
    assert value(frame, "best_client_accuracy_std") == 0.1


def test_the_round_with_the_best_validation_accuracy_is_judged() -> None:
    frame = pd.DataFrame({"accuracy": [0.9, None, 0.6, 0.7], "validation_accuracy": [0.5, None, 0.8, 0.8]})
    assert value(frame, "validated_accuracy") == 0.6
    assert value(frame, "best_validation_accuracy") == 0.8


def test_the_tail_is_the_mean_of_the_last_ten_rounds_that_were_judged() -> None:
    judged = [9.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    frame = pd.DataFrame(
        {"accuracy": [value for one in judged for value in (one, None)], "loss": [0.5, 0.3] + [None] * 20}
    )
    assert value(frame, "tail_accuracy") == pytest.approx(0.55)
    assert value(frame, "tail_loss") == pytest.approx(0.4)
    assert measures.column_of("tail_loss") == measures.column_of("loss") == "loss"


@pytest.mark.parametrize("name", ["auc", "best_auc", "validated_accuracy", "tail_auc"])
@pytest.mark.parametrize("columns", [["auc", "validation_accuracy"], []])
def test_what_was_not_measured_has_no_value(name: str, columns: list[str]) -> None:
    assert value(pd.DataFrame({"accuracy": [0.5], **{key: [float("nan")] for key in columns}}), name) is None


def test_an_unknown_measure_is_refused_with_the_nearest_and_those_allowed() -> None:
    with pytest.raises(
        ConfigError,
        match=r"no measure 'best_los'\. Did you mean best_loss\?.*Measures: accuracy, balanced_accuracy, loss",
    ):
        measures.find("best_los")
    own = {"gain": columns.Column("plain", "largest")}
    assert measures.find("best_gain", own).of(pd.DataFrame({"gain": [1.0, 3.0, 2.0]})) == 3.0


def test_every_column_of_a_run_is_a_measure(tmp_path: Path) -> None:
    """A column that the engine adds needs a unit."""
    options = {"workload.name": "toy-graphs", "workload.validation_share": 0.2, "model.name": "gin"}
    rounds = raysim.run(small_run(tmp_path / "run", options, schedule__rounds=1, evaluation__auc=True)).rounds
    assert set(comparable(rounds).columns) <= set(columns.COLUMNS)
