"""What is counted is what is done: histories against plans, and against the steps and tasks that runs report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.client_side.worker import Worker
from raysim.config.privacy import Privacy
from raysim.engine import privacy_budget
from raysim.engine.privacy_budget import PrivacyBudget, with_privacy
from raysim.engine.round_plan import Planner
from raysim.errors import ConfigError
from raysim.running.simulation import run
from raysim.wrappers.accounting import Sums, epsilon
from tests import wrapped_runs
from tests.fingerprint import fingerprint
from tests.small_runs import small_run, worker_of
from tests.watch import stopped

PRIVACY = Privacy("local", noise_multiplier=1.0)
EVERYONE = {"schedule.sampling_rate": 1.0, "workload.partition": "quantity"}
BASE = wrapped_runs.BASE | EVERYONE | {"privacy.noise_multiplier": 1.0}


def budget(tmp_path: Path, **options: Any) -> PrivacyBudget:
    config = small_run(tmp_path / "run", BASE, **options)
    return PrivacyBudget(config, Planner(config, worker_of(config).federation, None))


def test_cohorts_of_late_joiners(tmp_path: Path) -> None:
    """Half of four clients for two rounds of two epochs, then of six; back at an earlier round it is as it was."""
    options = {"schedule__joins": (4, 2), "schedule__join_every": 4, "schedule__sampling_rate": 0.5}
    counted = budget(tmp_path, privacy__kind="central", **options)
    assert counted.histories(4) == {(Sums(2, 4, True, 2), Sums(3, 6, True, 2))}
    assert counted.histories(2) == {(Sums(2, 4, True, 2),)}
    assert epsilon(counted.histories(0), 1.0, PRIVACY) == 0


def test_published_splits_that_overlap_have_no_epsilon(tmp_path: Path) -> None:
    """Those that one draws never do; files of others may."""
    config = small_run(tmp_path / "run", BASE, privacy__kind="local")
    worker = worker_of(config)
    federation: Any = worker.federation
    told = list[str]()
    with_privacy(worker, Planner(config, federation, None), None, told.append)
    first, _, *rest = federation.train.indices.tolist()
    twice = replace(federation.train, indices=np.array([first, first, *rest]))
    shared = Worker(config, replace(federation, train=twice))
    with pytest.raises(ConfigError, match="quantity, where several clients have the same sample"):
        with_privacy(shared, Planner(config, federation, None), None, told.append)


def test_local_noise_counts_tasks(tmp_path: Path) -> None:
    """Those of the client that took part most often; in virtual time, of which most updates have arrived by then."""
    options: dict[str, Any] = {"privacy__kind": "local", "schedule__sampling_rate": 0.5}
    result = run(small_run(tmp_path / "rounds", BASE, **options))
    most = int(result.clients["client"].value_counts().max())
    assert result.rounds["epsilon"].iloc[-1] == epsilon([(Sums(1, 1, True, most),)], 1.0, PRIVACY)
    options |= {"devices__preset": "phones", "timing__mode": "buffered", "timing__buffer": 2}
    result = run(small_run(tmp_path / "virtual", BASE, **options))
    for number, spent in zip(result.rounds["round"], result.rounds["epsilon"], strict=True):
        most = int(result.clients.query(f"round <= {number}")["client"].value_counts().max())
        assert spent == epsilon([(Sums(1, 1, True, most),)], 1.0, PRIVACY)


@pytest.mark.parametrize("kind", ["local", "dp-sgd"])
def test_what_is_spent_by_a_round_does_not_depend_on_the_rounds_after_it(tmp_path: Path, kind: str) -> None:
    """A run of four rounds that went on differed from one of eight, which counted updates that had not arrived."""
    options: dict[str, Any] = {"devices__preset": "phones", "devices__spread": 1.0, "privacy__kind": kind}
    options |= {"timing__mode": "buffered", "timing__buffer": 2, "timing__concurrency": 4, "schedule__local_epochs": 1}
    longer = run(small_run(tmp_path / "eight", BASE, **options, schedule__rounds=8)).rounds["epsilon"].tolist()
    shorter = run(small_run(tmp_path / "four", BASE, **options, schedule__rounds=4)).rounds["epsilon"].tolist()
    assert shorter == longer[:4] and longer[4] > longer[0]


@pytest.mark.parametrize("steps", [0, 3])
def test_dp_sgd_counts_the_steps_that_are_taken(tmp_path: Path, steps: int) -> None:
    options = {"privacy__kind": "dp-sgd", "schedule__sampling_rate": 0.7, "training__steps_per_epoch": steps}
    clients = run(small_run(tmp_path / "done", BASE, **options)).clients
    done = clients.groupby("client").agg({"samples": "max", "steps": "sum"})
    pairs = zip(done["samples"].tolist(), done["steps"].tolist(), strict=True)
    histories = {(Sums(min(8, samples), samples, False, int(taken)),) for samples, taken in pairs}
    assert budget(tmp_path, **options).histories(4) == histories and len(histories) > 2


def test_stale_updates_count_the_epochs_of_their_own_round(tmp_path: Path) -> None:
    options: dict[str, Any] = {"privacy__kind": "dp-sgd", "devices__preset": "phones", "devices__spread": 1.0}
    options |= {"timing__mode": "buffered", "timing__buffer": 2, "timing__concurrency": 4}
    options |= {"schedule__intervals": "random", "schedule__local_epochs": 3, "schedule__rounds": 8}
    result = run(small_run(tmp_path / "run", BASE, **options))
    done = result.clients.groupby("client").agg({"samples": "max", "steps": "sum"})
    assert result.clients["local_epochs"].nunique() > 1 and result.clients["staleness"].max() > 0
    pairs = zip(done["samples"].tolist(), done["steps"].tolist(), strict=True)
    histories = {(Sums(min(8, samples), samples, False, int(taken)),) for samples, taken in pairs}
    assert result.rounds["epsilon"].iloc[-1] == epsilon(histories, 1.0, Privacy("dp-sgd", noise_multiplier=1.0))


def test_a_resumed_run_goes_on_with_the_noise_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the dp-accounting of that day finds, and although the newest checkpoint is damaged."""
    options = {"privacy__kind": "local", "privacy__noise_multiplier": None, "privacy__epsilon": 20.0}
    options |= {"engine__checkpoint_every": 1}
    whole = run(small_run(tmp_path / "whole", BASE, **options))
    config = small_run(tmp_path / "stopped", BASE, **options)
    folder = stopped(config, rounds=3)
    (newest,) = (folder / "checkpoints").glob("round-000003*")
    (newest / "manifest.json").write_text("{}")
    monkeypatch.setattr(privacy_budget, "calibrated", lambda histories, privacy: 99.0)
    assert fingerprint(run(config, resume=folder).folder) == fingerprint(whole.folder)
    another = run(small_run(tmp_path / "another", BASE, **options))
    assert another.rounds["noise_multiplier"].tolist() == [99.0] * 4 != whole.rounds["noise_multiplier"].tolist()
