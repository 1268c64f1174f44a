"""Settings that a run may have decided itself, and rounds in which its settings end it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from raysim.config.config_file import sealed
from raysim.running.simulation import run
from raysim.verification.folder_check import FolderCheck
from raysim.verification.plan import end_differences, setting_differences
from tests.attack.folders import small

RISING, PEAK = [0.1, 0.2, 0.3], [0.1, 0.3, 0.2]


def said(column: str, values: list[float], planned: int | None = None, taken: int = 0, **evaluation: Any) -> list[str]:
    """All that is wrong with the end of a run with these values of a column, by its options of evaluation."""
    rounds = pd.DataFrame({"round": range(1, len(values) + 1), column: values})
    settings = {f"evaluation.{name}": value for name, value in evaluation.items()}
    return [each.what for each in end_differences(settings, rounds, len(values), planned, taken)]


@pytest.mark.parametrize(
    ("values", "planned", "evaluation"),
    [
        (RISING, 3, {}),
        (RISING, None, {}),  # a method of a user's own may plan any number
        (RISING, 3, {"patience": 1}),
        (PEAK, 3, {"patience": 1}),
        (PEAK, 100, {"patience": 1}),
        (RISING, 100, {"stop_at": 0.3}),
        (RISING, None, {"stop_at": 0.3}),
        ([0.1, float("nan"), 0.3], 100, {"stop_at": 0.3}),  # a round without evaluation
    ],
)
def test_a_run_ends_where_it_was_planned_or_where_its_measure_ends_it(
    values: list[float], planned: int | None, evaluation: dict[str, Any]
) -> None:
    assert said("accuracy", values, planned, **evaluation) == []


@pytest.mark.parametrize("evaluation", [{}, {"patience": 1}, {"stop_at": 0.4}])
def test_a_run_that_was_cut_off_is_told(evaluation: dict[str, Any]) -> None:
    assert said("accuracy", RISING, 100, **evaluation) == ["100 rounds planned, and the run ended after 3"]


def test_a_run_that_went_on_behind_its_end_is_told() -> None:
    what = "evaluation.patience or stop_at end it after round 2, and the run ended after 3"
    assert said("accuracy", RISING, 3, stop_at=0.2) == said("accuracy", RISING, None, stop_at=0.2) == [what]
    assert said("accuracy", PEAK, 2, patience=1) == ["2 rounds planned, and the run ended after 3"]


def test_which_values_are_better_follows_from_the_column() -> None:
    assert said("loss", RISING, 100, patience=2) == []  # a task without accuracy
    assert said("accuracy", RISING, 100, patience=2, measure="-accuracy") == []
    assert said("accuracy", RISING, 100, patience=2) != []
    for values in (RISING, RISING[::-1]):  # raysim's own absolute error, or a user's metric of that name
        assert said("absolute_error", values, 100, patience=2, measure="absolute_error") == []
    assert said("absolute_error", PEAK, 100, patience=2, measure="absolute_error") == []
    assert said("absolute_error", PEAK, 100, patience=3, measure="absolute_error") != []


def test_a_replay_has_no_round_of_its_own_where_the_rounds_before_ended_it() -> None:
    assert said("accuracy", RISING, 100, taken=3, stop_at=0.2) == []
    assert said("accuracy", RISING, 100, taken=2, stop_at=0.2) != []


def test_a_run_with_patience_cannot_be_cut_off(tmp_path: Path) -> None:
    folder = run(small(tmp_path / "run", schedule__rounds=3, evaluation__patience=50)).folder
    assert FolderCheck(folder).run().equal
    text = (folder / "config.yaml").read_text().rpartition("# SHA-256")[0]
    (folder / "config.yaml").write_text(sealed(text.replace("\n  rounds: 3\n", "\n  rounds: 100\n")))
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"planned_rounds": 100}))
    found = [str(each) for each in FolderCheck(folder).run().differences]
    assert found[0] == "config.yaml: 100 rounds planned, and the run ended after 3"


@pytest.mark.parametrize(
    ("name", "proven", "fits"),
    [
        ("training.last_batch", "keep", True),
        ("training.last_batch", "merge", True),
        ("training.last_batch", "drop", False),  # which a run never decides
        ("training.precision", "bf16", True),
        ("training.learning_rate", 0.1, False),
        ("model.stem", "auto", True),
        ("model.stem", "small", False),
    ],
)
def test_auto_stands_for_what_a_run_decides(name: str, proven: object, fits: bool) -> None:
    found = [str(each) for each in setting_differences({name: "auto"}, {name: proven})]
    assert found == ([] if fits else [f"config.yaml ({name}): 'auto', and {proven!r} in the proof"])
