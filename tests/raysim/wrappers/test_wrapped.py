"""Runs of methods within wrappers: a stop between two rounds leaves no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from raysim.simulation import run
from tests.fingerprint import fingerprint
from tests.small_runs import small_run
from tests.watch import stopped
from tests.wrapped_runs import BASE, WRAPPED


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPED)
def test_a_run_that_was_stopped_and_resumed_has_the_same_bits(tmp_path: Path, name: str) -> None:
    options = WRAPPED[name]
    whole = run(small_run(tmp_path / "whole", BASE, **options))
    if "privacy__kind" in options:
        spent = whole.rounds["epsilon"].tolist()
        assert spent == sorted(spent) and spent[0] > 0 and spent[-1] <= options.get("privacy__epsilon", np.inf)
    config = small_run(tmp_path / "stopped", BASE, **options)
    assert fingerprint(run(config, resume=stopped(config, rounds=3)).folder) == fingerprint(whole.folder)
