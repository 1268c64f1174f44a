"""Clients that leave, and data that change in mid-run: what changes, from when on, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from raysim.client_side.drift import Drift, Moment, next_labels
from raysim.errors import ConfigError
from raysim.running.open_run import prepare
from raysim.running.simulation import run
from tests.fingerprint import fingerprint
from tests.small_runs import small_run, worker_of
from tests.watch import stopped

BASE = {
    "model.name": "logistic",
    "workload.clients": 4,
    "workload.limit": 120,
    "schedule.rounds": 6,
    "training.batch_size": 8,
}
LABELS = {"events__drift": "labels", "events__drift_round": 3}
LEAVING = {"devices__preset": "phones", "events__leave": 0.5, "events__leave_at": 2.0, "events__back_at": 4.0}
AT_A_TIME = {"events__drift_round": None, "events__drift_at": 0.5}
MODES: dict[str, dict[str, Any]] = {
    "sync": {},
    "deadline": {"timing__deadline": 1.0},
    "async": AT_A_TIME,
    "buffered": {"timing__buffer": 2} | AT_A_TIME,
}


def test_labels_go_round_a_ring() -> None:
    table, place, seen = next_labels(10, seed=3).tolist(), 0, []
    for _ in range(10):
        place = table[place]
        seen.append(place)
    assert sorted(seen) == list(range(10)) and seen[-1] == 0


@pytest.mark.parametrize("kind", ["labels", "features"])
def test_the_data_of_the_drawn_clients_change_in_the_round(tmp_path: Path, kind: str) -> None:
    options = {"events__drift": kind, "events__drift_round": 3, "events__drift_share": 0.5}
    config = small_run(tmp_path, BASE, **options)
    worker, changed = worker_of(config), []
    federation = worker.federation
    for client in range(4):
        plain = federation.client(client, "cpu")
        for number in (3, 2):  # back again: what was under way is computed anew after a resume
            worker.at(Moment(number))
            data = worker.data(client)
            for mine, own in ((data.train, plain.train), (data.test, plain.test)):
                (batch,), (before,) = (samples.batches(1000) for samples in (mine, own))
                expected = next_labels(10, config.seed)[before.y] if kind == "labels" else before.y
                differs = not (torch.equal(batch.x, before.x) and torch.equal(batch.y, before.y))
                assert not (differs and number == 2)
                if differs:
                    changed.append(client)
                    assert torch.equal(batch.y, expected)
                    assert torch.equal(batch.x, before.x * (0.5 if kind == "features" else 1.0))
    assert len(set(changed)) == 2 and len(changed) == 4  # of each both training and test set
    whole = federation.global_test(0, 5, "cpu")
    assert Drift(config, federation).of_test(whole, Moment(3)) is whole  # not all clients' data change


def test_rounds_before_the_drift_are_as_without_and_all_after_are_not(tmp_path: Path) -> None:
    plain = run(small_run(tmp_path / "plain", BASE)).rounds["loss"].tolist()
    drifting = run(small_run(tmp_path / "drifting", BASE, **LABELS)).rounds["loss"].tolist()
    assert drifting[:2] == plain[:2]
    assert all(after > 1.1 * before for before, after in zip(plain[2:4], drifting[2:4], strict=True))
    same = run(
        small_run(tmp_path / "same", BASE, **LABELS | {"events__drift": "features", "events__drift_factor": 1.0})
    )
    assert same.rounds["loss"].tolist() == plain


@pytest.mark.parametrize(
    ("mode", "rounds", "trained", "judged"),
    [
        # Rounds begin at 0, 3.2, 6.4 and 9.6 seconds; the model of the second is judged at 6.4.
        ("sync", 4, [3, 4], [2, 3, 4]),
        # Steps at 1, 2, 3, 3.2, 4, 5, 6 and 6.4 seconds. The sixth and seventh take tasks of client 0 that began at 4
        # and 5, the eighth one of client 1 that began at 3.2.
        ("async", 8, [6, 7], [5, 6, 7, 8]),
    ],
)
def test_a_task_has_the_data_of_the_time_at_which_it_begins(
    tmp_path: Path, mode: str, rounds: int, trained: list[int], judged: list[int]
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("seconds_per_sample,bandwidth_down,bandwidth_up\n0.125,1e30,1e30\n0.4,1e30,1e30\n")
    options: dict[str, Any] = {
        "workload__clients": 2,
        "schedule__rounds": rounds,
        "schedule__local_epochs": 1,
        "training__steps_per_epoch": 1,  # of 8 samples: 1 and 3.2 seconds
        "devices__preset": "trace",
        "devices__trace": str(trace),
        "devices__latency": 0.0,
        "timing__mode": mode,
    }
    plain = run(small_run(tmp_path / "plain", BASE, **options)).rounds
    drift = {"events__drift": "features", "events__drift_at": 4.0}
    drifting = run(small_run(tmp_path / "drifting", BASE, **options, **drift)).rounds
    for column, changed in (("train_loss", trained), ("loss", judged)):
        assert plain["round"][plain[column] != drifting[column]].tolist() == changed


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_run_with_events_that_was_stopped_and_resumed_has_the_same_bits(tmp_path: Path, mode: str) -> None:
    options = LEAVING | LABELS | MODES[mode] | {"timing__mode": mode, "engine__checkpoint_every": 2}
    whole = run(small_run(tmp_path / "whole", BASE, **options))
    settings = small_run(tmp_path / "stopped", BASE, **options)
    resumed = run(settings, resume=stopped(settings, rounds=3))
    assert fingerprint(resumed.folder) == fingerprint(whole.folder)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"events__leave": 0.5, "events__leave_at": 1.0}, "set devices.preset to uniform, classes"),
        ({"events__back_at": 3.0}, "events.back_at: 3.0 has no effect with events.leave 0"),
        (LEAVING | {"events__leave_at": 4.0}, "events.back_at: 4.0 is not after events.leave_at 4.0"),
        (LEAVING | {"events__leave_at": 0.0, "events__back_at": 0.0}, "these clients would never be there"),
        ({"events__drift": "labels"}, "events.drift_round: 0 with events.drift labels. Set it"),
        ({"events__drift_round": 2}, "events.drift_round: 2 has no effect with events.drift none"),
        (LABELS | {"events__drift_factor": 0.1}, "events.drift_factor: 0.1 has no effect with events.drift labels"),
        (LABELS | {"events__drift_share": 0.0}, "events.drift_share: 0.0 is not allowed"),
        (LABELS | {"method__name": "centralized"}, "events.drift: labels is not possible with method centralized"),
        (LABELS | {"events__drift_round": 7}, "events.drift_round: 7 is after the last round of 6"),
        (
            LABELS | {"devices__preset": "phones", "events__drift_at": 3.0},
            "events.drift_at: 3.0 with events.drift_round 3: data change once",
        ),
        (LABELS | AT_A_TIME, "events.drift_at: 0.5 needs a clock, and there is none with devices.preset none"),
        (
            LABELS | {"workload__name": "toy-graphs", "workload__limit": None, "model__name": "gin"},
            "whose clients have graphs",
        ),
    ],
)
def test_events_that_cannot_be_are_refused_before_the_run(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(small_run(tmp_path / "run", BASE, **options))
    assert text in str(caught.value)
