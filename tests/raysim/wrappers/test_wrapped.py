"""Runs of methods within wrappers: a stop between two rounds leaves no trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raysim.cohort import Cohort
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.methods.feddyn import FedDyn
from raysim.running.simulation import run
from raysim.wrappers.attack import malicious
from raysim.wrappers.wrapped import Wrapped
from tests.fingerprint import fingerprint
from tests.raysim.methods.by_hand import context, updates
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


def test_a_forged_update_of_a_buffer_has_no_honest_change_behind_it() -> None:
    """IPM sends −2 times the honest mean, of changes as they came and as a step weighs them."""
    attack = Attack(kind="ipm", malicious_share=0.3, strength=2.0)
    (bad,) = malicious(attack, 0, 3)
    changes = np.array([[2, 0], [4, 8], [6, -4]], np.float32)
    given = replace(updates(changes / 2, [1, 1, 1]), unweighted=tuple(changes))
    told = context(cohort=Cohort(3, 3, 3, 3, 3))
    found = Wrapped(FedDyn(), attack, Compression(), Defense())._forged(given, told)
    expected = -2.0 * np.delete(changes, bad, axis=0).mean(axis=0)
    assert found.changes[bad].tolist() == expected.tolist()
    assert found.deltas[bad].tolist() == (expected / 2).tolist()
    assert all(np.array_equal(found.changes[i], changes[i]) for i in range(3) if i != bad)
