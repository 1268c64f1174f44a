"""Runs of methods within wrappers: a stop between two rounds leaves no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from raysim.engine.observer import Silent
from raysim.preparation import prepare
from raysim.simulation import execute, run
from tests.fingerprint import fingerprint
from tests.small_runs import small_run
from tests.wrapped_runs import BASE, WRAPPED


@pytest.mark.parametrize("name", WRAPPED)
def test_a_run_that_was_stopped_and_resumed_has_the_same_bits(tmp_path: Path, name: str) -> None:
    rounds: list[int] = []

    class Counter(Silent):
        def round_finished(self, row: object) -> None:
            rounds.append(len(rounds))

    options = WRAPPED[name]
    whole = run(small_run(tmp_path / "whole", BASE, **options))
    if "privacy__kind" in options:
        spent = whole.rounds["epsilon"].tolist()
        assert spent == sorted(spent) and spent[0] > 0 and spent[-1] <= options.get("privacy__epsilon", np.inf)
    stopped = small_run(tmp_path / "stopped", BASE, **options)
    folder = prepare(stopped)
    assert execute(stopped, folder, Counter(), stopping=lambda: len(rounds) >= 3).status == "stopped"
    assert fingerprint(run(stopped, resume=folder).folder) == fingerprint(whole.folder)
