"""Columns of the rounds table as measures."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

import raysim
from raysim import columns
from raysim.columns import Column
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


def test_the_average_is_of_all_rounds_that_were_judged_and_the_spread_of_the_last_ten() -> None:
    frame = pd.DataFrame({"accuracy": [9.0, *(value / 10 for value in range(1, 11))], "loss": [0.5, 0.3] + [None] * 9})
    assert value(frame, "spread_accuracy") == pytest.approx((82.5 / 9) ** 0.5 / 10)
    assert value(frame, "spread_loss") == pytest.approx(0.1 * 2**0.5)
    assert value(frame, "average_accuracy") == pytest.approx(14.5 / 11)
    assert value(frame, "average_loss") == pytest.approx(0.4)
    assert value(frame.iloc[:1], "spread_accuracy") is None
    assert value(pd.DataFrame({"loss": [0.5, math.inf, 0.3]}), "spread_loss") == math.inf
    assert measures.find("spread_accuracy").best == "smallest" and measures.find("tail_accuracy").best == "largest"


def test_equal_epochs_lie_on_the_line_between_the_judged_rounds_around_them() -> None:
    """Rounds end after 4, 8, 11 and 16 epochs, and the second was not judged."""
    frame = pd.DataFrame({"epochs_total": [4, 8, 11, 16], "accuracy": [0.1, None, 0.8, 1.0], "loss": [9.0, 8, 7, 6]})
    found = [value(frame, f"accuracy_at_epoch_{epoch}") for epoch in (3, 4, 10, 11, 12, 16, 17)]
    assert found == [None, 0.1, pytest.approx(0.7), 0.8, pytest.approx(0.84), 1.0, None]
    assert value(frame, "loss_at_epoch_8") == 8 and value(frame, "auc_at_epoch_10") is None
    assert measures.column_of("loss_at_epoch_10") == "loss" and measures.find("loss_at_epoch_10").best == "smallest"
    assert measures.find("gap_at_epoch_3", {"gap": Column("plain", "largest")}).column == "gap"
    with pytest.raises(ConfigError, match=r"no measure 'acuracy_at_epoch_40'.*NAME_at_epoch_40"):
        measures.find("acuracy_at_epoch_40")


def test_a_mean_over_epochs_lies_on_the_line_through_the_judged_rounds() -> None:
    """After 4, 8, 11 and 16 epochs, the second not judged: 0.1 more an epoch up to 0.8, then 0.04."""
    frame = pd.DataFrame({"epochs_total": [4, 8, 11, 16], "accuracy": [0.1, None, 0.8, 1.0], "loss": [9.0, 8, 7, 6]})
    assert value(frame, "accuracy_over_epochs_10_to_12") == pytest.approx((0.7 + 0.8 + 0.84) / 3)
    assert value(frame, "accuracy_over_epochs_4_to_4") == pytest.approx(0.1)
    assert value(frame, "loss_over_epochs_8_to_8") == 8 and value(frame, "auc_over_epochs_4_to_8") is None
    assert value(frame, "accuracy_over_epochs_3_to_8") is None and value(frame, "accuracy_over_epochs_8_to_17") is None
    assert value(frame.iloc[1:2], "accuracy_over_epochs_8_to_8") is None
    assert measures.column_of("loss_over_epochs_8_to_10") == "loss"
    for losses in ([1.0, math.inf], [math.inf, 1.0], [math.inf, math.inf]):
        assert value(pd.DataFrame({"epochs_total": [4, 8], "loss": losses}), "loss_over_epochs_4_to_6") == math.inf
    with pytest.raises(ConfigError, match=r"no measure 'loss_over_epochs_9_to_8': the second epoch is smaller"):
        measures.find("loss_over_epochs_9_to_8")


def test_a_column_of_a_method_may_begin_like_a_prefix() -> None:
    own = {"gap": Column("plain", "smallest")}
    found = measures.find("average_gap", own)
    assert found.of(pd.DataFrame({"average_gap": [2.0, 4.0, None]})) == 4.0
    assert found.of(pd.DataFrame({"gap": [2.0, 4.0, None]})) == 3.0


@pytest.mark.parametrize("name", ["auc", "best_auc", "validated_accuracy", "tail_auc", "spread_auc", "average_auc"])
@pytest.mark.parametrize("columns", [["auc", "validation_accuracy"], []])
def test_what_was_not_measured_has_no_value(name: str, columns: list[str]) -> None:
    assert value(pd.DataFrame({"accuracy": [0.5], **{key: [float("nan")] for key in columns}}), name) is None


def test_costs_of_an_accuracy_by_hand() -> None:
    """It is first reached in round 3, before which 3 · (4 + 6) bytes were sent."""
    frame = pd.DataFrame({"round": [1, 2, 3, 4], "accuracy": [0.5, None, 0.8, 0.9], "virtual_seconds": [1.5, 2, 4, 9]})
    frame = frame.assign(bytes_down=4, bytes_up=6)
    found = [value(frame, f"{cost}_to_0.8") for cost in ("rounds", "bytes", "virtual_seconds", "joules")]
    assert found == [3, 30, 4.0, None]
    assert value(frame, "rounds_to_0.95") is None and value(pd.DataFrame({"loss": [1.0]}), "rounds_to_0.8") is None
    assert measures.find("bytes_to_.8").unit == "bytes" and measures.find("rounds_to_1").best == "smallest"
    with pytest.raises(ConfigError, match=r"no measure 'rounds_to_80'.*rounds_to_0\.8 or bytes_to_0\.8"):
        measures.find("rounds_to_80")


def test_gains_over_local_are_paired_client_by_client() -> None:
    """Clients 0 and 7 gain 0.2 and lose 0.1; client 3 was not judged in the other run. The last judged rounds count."""
    accuracies = ["0=0.1 7=0.1", "0=0.6 3=1 7=0.4", None]
    own = pd.DataFrame({"round": [1, 2, 3], "client_accuracies": accuracies})
    local = pd.DataFrame({"round": [2], "client_accuracies": ["0=0.4 7=0.5"]})
    gain, share = (measures.find(name) for name in ("local_gain", "local_gain_share"))
    assert gain.of(own, local) == pytest.approx(0.05) and share.of(own, local) == 0.5
    assert gain.of(own) is None and gain.of(own, pd.DataFrame({"accuracy": [1.0]})) is None
    assert measures.find("tuned_local_gain").of(own, local) is None


def test_gains_of_a_longer_run_are_those_of_the_last_round_in_which_both_were_judged() -> None:
    """Its clients gain 0.1 and 0.2 in round 4; what they reach after it, they reach by training longer."""
    short = pd.DataFrame({"round": [2, 4], "client_accuracies": ["0=0.1 1=0.1", "0=0.5 1=0.5"]})
    longer = pd.DataFrame({"round": [3, 4, 6, 8], "client_accuracies": ["0=0 1=0", "0=0.6 1=0.7", None, "0=1 1=1"]})
    gain = measures.find("local_gain")
    assert gain.of(longer, short) == pytest.approx(0.15) and gain.of(short, longer) == pytest.approx(-0.15)
    assert gain.of(longer.iloc[2:], short) is None  # no round was judged in both


def test_a_run_keeps_every_client_if_asked(tmp_path: Path) -> None:
    """Their mean is the column of means, before and after fine-tuning; without the option there is no such column."""
    options = {"model.name": "logistic", "workload.clients": 4, "workload.limit": 200, "schedule.rounds": 1}
    config = small_run(tmp_path / "run", options, evaluation__each_client=True, evaluation__fine_tune=1)
    last = raysim.run(config).rounds.iloc[-1]
    for start in ("", "tuned_"):
        parts = [part.split("=") for part in last[f"{start}client_accuracies"].split()]
        assert [client for client, _ in parts] == ["0", "1", "2", "3"]
        mean = sum(float(accuracy) for _, accuracy in parts) / 4
        assert mean == pytest.approx(last[f"{start}client_accuracy_mean"], abs=1e-5)
    with pytest.raises(ConfigError, match="no measure 'client_accuracies'"):
        measures.find("client_accuracies")


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
