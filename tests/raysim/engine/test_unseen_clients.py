"""Clients that are judged but never trained (``schedule.unseen_clients``, ``schedule.without``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.cohort import cohort_of
from raysim.errors import ConfigError
from raysim.running.simulation import run
from raysim.workloads.metrics import evaluate
from tests.fingerprint import fingerprint
from tests.small_runs import small_run, worker_of

BASE = {"workload.name": "digits", "workload.clients": 5, "model.name": "logistic", "schedule.rounds": 2}


def config(folder: Path, **options: object) -> Any:
    return small_run(folder / "run", BASE, **{"schedule__unseen_clients": 2, **options})


def test_the_last_clients_are_judged_but_never_trained(tmp_path: Path) -> None:
    wanted = config(tmp_path)
    result = run(wanted)
    assert sorted(set(result.clients["client"])) == [0, 1, 2]
    federation = worker_of(wanted).federation
    tests = [federation.client(client, "cpu").test for client in range(5)]
    own = [evaluate(result.model, test.batches(500), 10) for test in tests]
    last = result.rounds.iloc[-1]
    assert last["unseen_accuracy"] == pytest.approx(np.mean([found.accuracy for found in own[3:]]))
    assert last["unseen_loss"] == pytest.approx(np.mean([found.loss for found in own[3:]]), rel=1e-5)
    assert last["client_accuracy_mean"] == pytest.approx(np.mean([found.accuracy for found in own[:3]]))
    assert result.summary["unseen_accuracy"] == last["unseen_accuracy"]


def test_what_they_hold_changes_nothing_of_the_model(tmp_path: Path) -> None:
    """The same three clients alone: rows of a run in which the other two do not exist have the same updates."""
    rows = run(config(tmp_path)).clients
    every = run(config(tmp_path / "all", schedule__unseen_clients=0, schedule__rounds=1)).clients
    first = rows.query("round == 1").set_index("client")["train_loss"]
    assert first.tolist() == every.set_index("client")["train_loss"].loc[first.index].tolist()


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    whole = run(config(tmp_path, method__name="scaffold", engine__checkpoint_every=1))
    part = run(config(tmp_path / "part", method__name="scaffold", engine__checkpoint_every=1, schedule__rounds=1))
    assert fingerprint(run({"schedule.rounds": 2}, resume=part.folder).folder) == fingerprint(whole.folder)


def test_personal_methods_judge_them_by_what_a_new_client_gets(tmp_path: Path) -> None:
    last = run(config(tmp_path, method__name="local")).rounds.iloc[-1]
    assert last["accuracy"] == pytest.approx(last["client_accuracy_mean"])
    assert last["unseen_accuracy"] < last["accuracy"]  # their models are the initial ones


def test_the_cohort_counts_those_that_take_part() -> None:
    federation = worker_of(small_run(Path("x"), BASE)).federation
    assert cohort_of(federation, [0, 2], 3, 3).existing == 3


def test_requests_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unseen_clients: 5 of 5 clients never take part.*Allowed: 0 to 4"):
        run(config(tmp_path, schedule__unseen_clients=5))
    with pytest.raises(ConfigError, match=r"joins 3 \+ 2 = 5, but the run has 3 clients"):
        run(config(tmp_path, schedule__joins=(3, 2), schedule__join_every=1))
    with pytest.raises(
        ConfigError, match=r"unseen_clients: 2 is not possible with method centralized, which trains on"
    ):
        config(tmp_path, method__name="centralized")


def test_virtual_time_knows_only_those_that_take_part(tmp_path: Path) -> None:
    timed = {"timing__mode": "async", "timing__concurrency": 2, "devices__preset": "phones", "schedule__rounds": 8}
    assert set(run(config(tmp_path, **timed)).clients["client"]) == {0, 1, 2}


def test_the_last_client_left_out_is_the_same_as_an_unseen_one(tmp_path: Path) -> None:
    for method in ("fedavg", "scaffold"):  # scaffold counts all clients
        options = {"method__name": method, "schedule__unseen_clients": 0}
        without = run(config(tmp_path / f"{method} without", schedule__without=(4,), **options))
        unseen = run(config(tmp_path / f"{method} unseen", **{**options, "schedule__unseen_clients": 1}))
        assert fingerprint(without.folder) == fingerprint(unseen.folder)


def test_the_others_are_drawn_as_with_it_and_attack_as_with_it(tmp_path: Path) -> None:
    options: dict[str, object] = {
        "schedule__unseen_clients": 0,
        "schedule__sampling_rate": 0.6,
        "attack__kind": "sign-flip",
        "attack__malicious_share": 0.4,
    }
    every = run(config(tmp_path, **options)).clients
    without = run(config(tmp_path / "without", schedule__without=(1,), **options)).clients
    columns = ["round", "client", "malicious"]
    assert (every["client"] == 1).any()
    assert every.query("client != 1")[columns].values.tolist() == without[columns].values.tolist()


def test_who_is_left_out_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"schedule.without: 3 is no client that takes part"):
        run(config(tmp_path, schedule__without=(3,)))
    with pytest.raises(ConfigError, match=r"schedule.without: all 3 clients are left out"):
        run(config(tmp_path, schedule__without=(0, 1, 2)))
    with pytest.raises(ConfigError, match=r"schedule.without: \[0\] is not possible with devices.preset"):
        config(tmp_path, schedule__without=(0,), devices__preset="uniform")
    with pytest.raises(ConfigError, match=r"schedule.without: \[0\] is not possible with method centralized"):
        config(tmp_path, schedule__without=(0,), schedule__unseen_clients=0, method__name="centralized")
