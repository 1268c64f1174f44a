"""Rungs of a bracket, and that a trial which goes on is one run, with the bits of one that never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import RunConfig, build
from raysim.engine.observer import Silent
from raysim.errors import ConfigError
from raysim.search import command
from raysim.search.halving import Bracket, bracket_of
from raysim.search.table import page
from raysim.search.trials import Trial, carry_out
from raysim.studies import cell_run
from raysim.studies.study_file import Cell

WORDS = [
    *("--method", "fedprox", "--model", "logistic", "--workload.limit", "100", "--clients", "3", "--rounds", "4"),
    *("--validation_share", "0.2", "--space", "mu=0.001:1:log", "--space", "learning_rate=0.01:0.5:log"),
    *("--trials", "4", "--halving", "2", "--pictures", "false"),
]


def config(rounds: int, every: int = 1, **more: Any) -> RunConfig:
    options = {name.replace("__", "."): value for name, value in more.items()}
    return build([{"method.name": "fedavg", "schedule.rounds": rounds, "evaluation.every": every, **options}])


@pytest.mark.parametrize(
    ("rounds", "every", "factor", "batch", "first", "rungs"),
    [
        (20, 1, 2, 4, None, (5, 10, 20)),
        (20, 4, 2, 4, None, (8, 12, 20)),
        (27, 1, 3, 9, None, (3, 9, 27)),
        (20, 1, 2, 5, None, (5, 10, 20)),
        (7, 2, 2, 4, None, (2, 4, 7)),
        (20, 5, 2, 8, None, (5, 10, 20)),
        (20, 2, 3, 4, 2, (2, 6, 18, 20)),
    ],
)
def test_rungs_are_multiples_of_the_evaluations(
    rounds: int, every: int, factor: int, batch: int, first: int | None, rungs: tuple[int, ...]
) -> None:
    assert bracket_of(config(rounds, every), factor, batch, first).rungs == rungs


@pytest.mark.parametrize(
    ("given", "factor", "batch", "first", "message"),
    [
        (config(20), 4, 3, None, "--batch 3: a bracket needs at least as many trials as --halving 4"),
        (config(20, 4), 2, 4, 6, r"--first-rung 6: not allowed\. Allowed: a multiple of evaluation\.every \(4\) below"),
        (config(20), 2, 4, 20, "below the 20 rounds"),
        (config(3, 3), 2, 4, None, "have no rung before their end"),
        (config(20, schedule__intervals="random"), 2, 4, None, "does not begin with the rounds of one of 5"),
        (config(20, schedule__epochs=40), 2, 4, None, r"schedule\.epochs: rungs are rounds"),
    ],
)
def test_what_cannot_be_halved_is_refused(
    given: RunConfig, factor: int, batch: int, first: int | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        bracket_of(given, factor, batch, first)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--trials", "6"], "--trials 6: not allowed. Allowed with --halving: a multiple of --batch 4"),
        (["--space", "evaluation.every=1:2"], "--space evaluation.every: cannot be searched with --halving"),
        (["--halving", "1"], "--halving 1: not allowed. Allowed: a whole number ≥ 2"),
    ],
)
def test_other_requests_are_refused(tmp_path: Path, more: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        command.read([*WORDS, *more, "--output", str(tmp_path / "search")], "")
    assert message in str(error.value) and not (tmp_path / "search").exists()


def test_a_first_rung_needs_halving(tmp_path: Path) -> None:
    words = [word for word in WORDS if word not in ("--halving", "2")]
    with pytest.raises(ConfigError, match="no rungs without --halving"):
        command.read([*words, "--first-rung", "1", "--output", str(tmp_path)], "")


def test_equal_trials_go_on_in_their_order_and_failed_ones_never() -> None:
    bracket = Bracket(2, (1, 2))
    assert bracket.best([0.5, None, 0.7, 0.5], largest=True) == [0, 2]
    assert bracket.best([0.5, 0.1, 0.7, 0.1, 0.1], largest=False) == [1, 3]
    assert bracket.best([None, None, 0.1, None], largest=True) == [2]
    assert bracket.best([None, None], largest=True) == []
    assert Bracket(3, (1, 2, 4)).sizes(4) == [4, 1, 1] and Bracket(2, (1, 2, 4)).sizes(8) == [8, 4, 2]


class Rounds(Silent):
    """Counts the rounds of all runs, and stops at the most that it is given."""

    def __init__(self, most: int) -> None:
        self.begun, self.finished, self.most = 0, 0, most

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.begun += 1

    def round_finished(self, row: object) -> None:
        self.finished += 1

    def stops(self) -> bool:
        return self.finished >= self.most

    def compute(self, cells: Sequence[Cell]) -> dict[str, str]:
        for cell in cells:
            if not self.stops():
                cell_run.run_cell(cell, self, self.stops)
        return {}


def searched(folder: Path, rounds: Rounds) -> tuple[list[Trial], str]:
    """The trials of the search in ``folder``, and its page."""
    request = command.read([*WORDS, "--output", str(folder)], "")
    made = carry_out(request.search, rounds.compute, rounds.stops, lambda trials: None)
    return made, page(request.search, made, request.words, request.config)


def test_a_trial_that_goes_on_is_one_run_also_after_a_stop(tmp_path: Path) -> None:
    rounds = Rounds(1000)
    made, text = searched(tmp_path / "whole", rounds)
    assert rounds.begun == 4 + 2 + 2 == sum(trial.trained for trial in made)
    assert "1 bracket × 1 seed × trials (4 to round 1, 2 to round 2, 1 to round 4) = 8 rounds; methods" in text
    (best,) = [trial for trial in made if trial.rungs[-1][0] == 4]
    straight = best.cells[0].path.with_name("straight.csv")
    whole = Cell("", "straight", 0, best.cells[0].layers, straight)
    assert cell_run.run_cell(whole, rounds, lambda: False) == cell_run.End("finished")
    assert straight.read_bytes() == best.cells[0].path.read_bytes()
    # Stopped after the third trial, and in the middle of the run that is trained to the end.
    for most in (3, 4):
        assert searched(tmp_path / "stopped", Rounds(most))[0] == []
    assert searched(tmp_path / "stopped", last := Rounds(1000))[1] == text and last.begun == 1
