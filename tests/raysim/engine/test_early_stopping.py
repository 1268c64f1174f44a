from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import build
from raysim.config.sections import Evaluation
from raysim.engine.early_stopping import EarlyStopping
from raysim.errors import ConfigError, RaysimError
from raysim.launch import main
from raysim.running.simulation import run
from raysim.workloads.objective import CLASSIFICATION, Objective
from tests.fingerprint import fingerprint
from tests.small_runs import IN_PROCESS, LOGISTIC, MakeConfig
from tests.watch import stopped

SMALL = {path: str(value).lower() for path, value in {**IN_PROCESS, **LOGISTIC}.items()}


def ends(values: Sequence[float], objective: Objective = CLASSIFICATION, **options: Any) -> tuple[int, str]:
    """The round after which a run with these values ends (0: none), and why."""
    followed = EarlyStopping(Evaluation(**options), objective, (*objective.columns, "client_accuracy_std", "reward"))
    for number, value in enumerate(values, start=1):
        followed.see({"round": number, followed.column: value})
        if followed.reason:
            return number, followed.reason
    return 0, ""


def test_it_ends_where_the_measure_is_reached() -> None:
    assert ends([0.5, 0.9, 0.95], stop_at=0.9) == (2, "accuracy has reached 0.9 in round 2, and 0.9 was asked for")
    assert ends([0.5, 0.6], stop_at=0.9)[0] == 0
    assert ends([0.5, 0.3, 0.1], stop_at=0.3, measure="loss")[0] == 2
    assert ends([0.5, 0.3, 0.1], Objective("regression"), stop_at=0.1, measure="absolute_error")[0] == 3
    assert ends([0.5, 0.3, 0.1], Objective("regression"), stop_at=0.1, measure="-absolute_error")[0] == 3
    assert ends([0.5, 0.3, 0.1], stop_at=0.1, measure="client_accuracy_std")[0] == 3
    own = Objective(
        "regression", metrics={"absolute_error": lambda outputs, targets: 0.0}
    )  # a user's own may mean anything
    assert ends([0.5, 0.3, 0.9], own, stop_at=0.9, measure="absolute_error")[0] == 3
    assert ends([2.0, 0.9], Objective("regression"), stop_at=1.0)[0] == 2


def test_patience_counts_evaluations_since_the_best() -> None:
    values = [0.5, nan, 0.6, 0.6, nan, 0.55, 0.58]
    assert ends(values, patience=2) == (
        6,
        "accuracy has not been better for 2 evaluations than the 0.6 of round 3",
    )
    assert ends(values, patience=3)[0] == 7
    _, reason = ends([4.5, 5, 6], Objective("regression"), patience=2, measure="absolute_error")
    assert reason == "absolute_error has not been better for 2 evaluations than the 4.5 of round 1"
    assert ends([-4.5, -5, -6], patience=2, measure="reward")[1].endswith("than the -4.5 of round 1")
    assert ends(values, patience=4)[0] == ends(values)[0] == 0


def test_an_infinite_loss_is_the_best_until_one_is_finite() -> None:
    """FedProto's loss is infinite as long as a class has no prototype."""
    assert ends([inf, inf, 2.0, 1.0], measure="loss", patience=2)[0] == 0
    reason = "loss has not been better for 2 evaluations than the inf of round 1"
    assert ends([inf, inf, inf, 2.0], measure="loss", patience=2) == (3, reason)


def test_a_column_that_will_not_be_there_is_one_sentence() -> None:
    with pytest.raises(
        ConfigError, match=r"lost will be no column .*Did you mean loss\? Columns of this run: accuracy, "
    ):
        EarlyStopping(Evaluation(patience=1, measure="-lost"), CLASSIFICATION, CLASSIFICATION.columns)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stop_at": 90}, r"stop_at: 90 is never reached by accuracy, .*; for 90 % set it to 0\.9\. Allowed: 0 to 1"),
        ({"stop_at": 1.5, "measure": "balanced_accuracy"}, "never reached by balanced_accuracy"),
        ({"stop_at": -0.5, "measure": "-accuracy"}, r"between 0 and 1\. Allowed"),
    ],
)
def test_a_share_above_one_is_never_reached(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        EarlyStopping(Evaluation(**options), CLASSIFICATION, CLASSIFICATION.columns)


def test_other_measures_may_reach_more_than_one() -> None:
    """A loss, and a metric of the user's own, of which only its name is known."""
    own = Objective(metrics={"accuracy_in_percent": lambda outputs, labels: labels})
    assert ends([3.0], stop_at=5, measure="loss")[0] == 1
    assert ends([50.0, 91.0], own, stop_at=90, measure="accuracy_in_percent")[0] == 2


def test_a_measure_that_a_run_will_not_have_is_found_before_its_first_round(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was after round 1, with the advice to start again and the advice to resume, which failed again."""
    config = make_config("run", evaluation__measure="f1", evaluation__patience=2)
    with pytest.raises(RaysimError, match="f1 will be no column of the table of rounds"):
        run(config)
    assert not Path(config.output).exists()
    words = [f"--{path}={value}" for path, value in SMALL.items()]
    chosen = ["--evaluation.measure", "f1", "--patience", "2", "--output", str(config.output)]
    assert main([*words, *chosen]) == 2
    said = capsys.readouterr().err
    assert "Columns of this run: accuracy, loss, balanced_accuracy, train_loss" in said and "--resume" not in said


def test_a_measure_without_an_effect_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"measure: f1 has no effect with evaluation.patience 0 and .*stop_at null"):
        build([{"evaluation.measure": "f1"}])


def test_a_run_that_ended_early_ends_in_the_same_round_after_a_stop(make_config: MakeConfig) -> None:
    options: dict[str, Any] = {"schedule__rounds": 8, "evaluation__patience": 1, "training__learning_rate": 1e-6}
    options |= {"model__name": "logistic", "workload__clients": 4, "workload__limit": 200}
    whole = run(make_config("whole", **options))
    rounds = len(whole.rounds)
    assert 1 < rounds < 8 and whole.summary["rounds"] == rounds and whole.summary["planned_rounds"] == 8
    assert "has not been better for 1 evaluations" in (whole.folder / "run.log").read_text()
    config = make_config("stopped", **options)
    folder = stopped(config, rounds=1)
    assert fingerprint(run(config, resume=folder).folder) == fingerprint(whole.folder)
    assert len(run(config, resume=folder).rounds) == rounds
