from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import pytest

from raysim.config.sections import Evaluation
from raysim.engine.early_stopping import EarlyStopping
from raysim.errors import RaysimError
from raysim.simulation import run
from tests.fingerprint import fingerprint
from tests.small_runs import MakeConfig
from tests.watch import stopped
from workloads.objective import CLASSIFICATION, Objective


def ends(values: Sequence[float], objective: Objective = CLASSIFICATION, **options: Any) -> tuple[int, str]:
    """The round after which a run with these values ends (0: none), and why."""
    followed = EarlyStopping(Evaluation(**options), objective)
    for number, value in enumerate(values, start=1):
        followed.see({"round": number, followed.column: value})
        if followed.reason:
            return number, followed.reason
    return 0, ""


def test_it_ends_where_the_measure_is_reached() -> None:
    assert ends([0.5, 0.9, 0.95], stop_at=0.9) == (2, "accuracy has reached 0.9 in round 2, and 0.9 was asked for")
    assert ends([0.5, 0.6], stop_at=0.9)[0] == 0
    assert ends([0.5, 0.3, 0.1], stop_at=0.3, measure="loss")[0] == 2
    assert ends([0.5, 0.3, 0.1], stop_at=0.1, measure="-absolute_error")[0] == 3
    assert ends([2.0, 0.9], Objective("regression"), stop_at=1.0)[0] == 2


def test_patience_counts_evaluations_since_the_best() -> None:
    values = [0.5, nan, 0.6, 0.6, nan, 0.55, 0.58]
    assert ends(values, patience=2) == (
        6,
        "accuracy has not been better for 2 evaluations than the 0.6 of round 3",
    )
    assert ends(values, patience=3)[0] == 7
    assert ends(values, patience=4)[0] == ends(values)[0] == 0


def test_a_column_that_is_not_there_is_one_sentence() -> None:
    followed = EarlyStopping(Evaluation(patience=1, measure="speed"), CLASSIFICATION)
    with pytest.raises(RaysimError, match=r"no column speed\. Columns of numbers: accuracy\."):
        followed.see({"round": 1, "accuracy": 0.5})


def test_a_run_that_ended_early_ends_in_the_same_round_after_a_stop(make_config: MakeConfig) -> None:
    options: dict[str, Any] = {"schedule__rounds": 8, "evaluation__patience": 1, "training__learning_rate": 1e-6}
    whole = run(make_config("whole", **options))
    rounds = len(whole.rounds)
    assert 1 < rounds < 8 and whole.summary["rounds"] == rounds and whole.summary["planned_rounds"] == 8
    assert "has not been better for 1 evaluations" in (whole.folder / "run.log").read_text()
    config = make_config("stopped", **options)
    folder = stopped(config, rounds=1)
    assert fingerprint(run(config, resume=folder).folder) == fingerprint(whole.folder)
    assert len(run(config, resume=folder).rounds) == rounds
