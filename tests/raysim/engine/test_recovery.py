"""Back to the last checkpoint when something is lost, and when that is given up: with made-up rounds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from raysim.engine.observer import RunNotes
from raysim.engine.recovery import RETURNS, run_through
from raysim.errors import LostError
from raysim.storage.run_folder import RunFolder
from tests.watch import Watch


class Rounds:
    """Loses something after each of these rounds in turn, and goes back to the one before ``kept``."""

    def __init__(self, losses: list[int], kept: int) -> None:
        self.losses, self.kept = losses, kept
        self.state = SimpleNamespace(round=0)

    def run(self) -> None:
        if self.losses:
            self.state.round = self.losses.pop(0)
            raise LostError("a state was lost")
        self.state.round = 99

    def go_back(self) -> None:
        self.state.round = self.kept


def through(tmp_path: Path, rounds: Any) -> list[str]:
    watch = Watch()
    run_through(rounds, RunNotes(RunFolder.create(tmp_path / "run", "", {}), watch))
    assert rounds.state.round == 99
    return watch.faults


def test_it_says_where_it_goes_on(tmp_path: Path) -> None:
    assert through(tmp_path, Rounds([5], 3)) == ["a state was lost; the run goes on from the checkpoint of round 3"]
    assert (tmp_path / "run" / "run.log").read_text().rstrip().endswith("from the checkpoint of round 3")


def test_without_a_checkpoint_it_starts_again(tmp_path: Path) -> None:
    assert through(tmp_path, Rounds([2], 0)) == ["a state was lost; the run starts again from round 1"]


def test_losses_with_progress_in_between_never_end_a_run(tmp_path: Path) -> None:
    assert len(through(tmp_path, Rounds(list(range(1, 50)), 0))) == 49


def test_without_progress_it_is_given_up(tmp_path: Path) -> None:
    # The first loss is after new rounds; so is 8, and after that nothing is new.
    assert len(through(tmp_path, Rounds([7, *[7] * (RETURNS - 1), 8], 3))) == RETURNS + 1
    with pytest.raises(LostError, match=f"{RETURNS} times in a row .* beyond round 7.*--engine.checkpoint_every"):
        through(tmp_path / "2", Rounds([7, *[6] * RETURNS], 3))
