"""The clock charges what the tables say was sent, for every method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.config import registry
from raysim.config.run_config import Devices, RunConfig
from raysim.results.result import load_result
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from raysim.timeline import clock_of, tables
from raysim.virtual_time.devices.profiles import make_profiles
from raysim.virtual_time.fleet import Fleet
from tests.made_subgraphs import NODE_METHODS, node_options
from tests.small_runs import small_run
from tests.watch import Watch

SLOW = {"bandwidth_down": 0.8, "bandwidth_up": 0.4, "latency": 0.5, "seconds_per_sample": 0.25}
"""Mbit/s: 100,000 and 50,000 bytes a second."""
BASE: dict[str, Any] = {
    "workload.clients": 5,
    "workload.limit": 100,
    "schedule.rounds": 4,
    "schedule.local_epochs": 1,
    "schedule.sampling_rate": 0.6,
    "evaluation.every": 4,
    "devices.preset": "uniform",
    **{f"devices.{name}": value for name, value in SLOW.items()},
}
BUFFERED = {"timing__mode": "buffered", "timing__buffer": 2, "timing__concurrency": 4}
CASES: dict[str, dict[str, Any]] = {
    **{name: {"method__name": name} for name in registry.known("method") if name != "centralized"},
    "fedrad exact": {"method__name": "fedrad", "method__system_gradient": "exact"},
    "fedssp gsks": {"method__name": "fedssp", "method__preference": False},
    "fedpac local statistics": {
        "method__name": "fedpac",
        "model__name": "tests.raysim.user_code:WithBatchNorm",
        "training__batchnorm_statistics": "local",
    },
    "compressed": {"compression__kind": "top-k", "compression__down": "int8"},
    "bounded": {"privacy__kind": "local", "privacy__noise_multiplier": 1.0},
    **{
        f"{name} buffered": {"method__name": name, "devices__drop_probability": 0.3, **BUFFERED}
        for name in ("apple", "fedpac", "fedproto", "scaffold")
    },
}


def settings(folder: Path, case: str) -> RunConfig:
    options = {"method__name": "fedavg", **CASES[case]}
    own = getattr(registry.resolve("method", options["method__name"]), "defaults", {})
    options.setdefault("model__name", own.get("model.name", "mlp"))
    if own.get("workload.name") == "toy-graphs":
        options |= {"workload__name": "toy-graphs", "workload__graphs_per_client": 8, "workload__limit": None}
    if options["method__name"] in NODE_METHODS:
        options |= node_options()
    return small_run(folder, BASE, **options)


def test_the_cohort_of_a_round_that_is_opened_again_is_the_last_one(tmp_path: Path) -> None:
    """It counted each client as often as it had been sampled: 9 of 3 clients."""
    options = {"devices__drop_probability": 0.8, "schedule__sampling_rate": 1.0, "workload__clients": 3}
    clock = clock_of(small_run(tmp_path / "run", BASE, **options, schedule__rounds=20))
    assert max(len(step.dispatched) for step in clock.steps) > 3
    assert all(clock.cohort(step.number) == [0, 1, 2] for step in clock.steps)


@pytest.mark.parametrize("case", CASES)
def test_the_clock_charges_the_bytes_of_the_tables(tmp_path: Path, case: str) -> None:
    config, watch = settings(tmp_path / "run", case), Watch()
    folder = prepare(config)
    assert execute(config, folder, watch).status == "finished"
    assert not [note for note in watch.notes if "bytes" in note]
    rounds, clients = load_result(folder).rounds, load_result(folder).clients
    steps, _ = tables(clock_of(config))  # before any training
    for name in ("bytes_down", "bytes_up", "virtual_seconds"):
        assert steps[name].tolist() == pytest.approx(rounds[name].tolist(), rel=1e-9), name
    if config.timing.mode == "sync":  # then a round's messages are those of its participants
        work = clients.groupby("round")["samples"].sum() * SLOW["seconds_per_sample"]
        took = (clients["arrived"] - clients["dispatched"]).groupby(clients["round"]).sum()
        bytes_down, bytes_up = rounds["bytes_down"].to_numpy() / 100_000, rounds["bytes_up"].to_numpy() / 50_000
        np.testing.assert_allclose(took, rounds["participants"].to_numpy() + bytes_down + bytes_up + work)


def test_a_method_that_does_not_say_what_it_sends_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = registry.resolve("method", "fedproto")
    monkeypatch.setattr(method, "traits", replace(method.traits, extra_bytes=None))
    config, watch = settings(tmp_path / "run", "fedproto"), Watch()
    execute(config, prepare(config), watch)
    (told,) = [note for note in watch.notes if "bytes" in note]
    assert told.startswith("round 1: virtual time has charged 0 bytes for an update, of 2640, so that it runs too fast")


def test_a_message_grows_with_the_clients_that_have_been_in_a_step() -> None:
    """100 bytes, 7 more from the first step on, and 10 for each other client."""
    profiles = make_profiles(Devices(preset="uniform"), 3, 0)
    fleet = Fleet(profiles, np.ones(3, np.int64), 100, 0, down_later=7, down_per_client=10)
    assert fleet.message_bytes(np.array([False, False, False])).tolist() == [100, 100, 100]
    assert fleet.message_bytes(np.array([True, False, True])).tolist() == [117, 127, 117]


def test_the_clock_charges_the_batches_of_dp_sgd(tmp_path: Path) -> None:
    """As many steps as training takes, of batches of 8 in the mean: more samples than a client holds."""
    options = {"privacy__kind": "dp-sgd", "privacy__noise_multiplier": 0.0, "training__batch_size": 8}
    config = small_run(tmp_path / "run", BASE | {"schedule.local_epochs": 2}, method__name="fedavg", **options)
    folder = prepare(config)
    assert execute(config, folder, Watch()).status == "finished"
    clients = load_result(folder).clients
    trained = clients["steps"] * np.minimum(8, clients["samples"])
    assert (trained > 2 * clients["samples"]).any()
    sent = clock_of(config).fleet
    seconds = 2 * SLOW["latency"] + sent.bytes_down / 100_000 + sent.bytes_up / 50_000
    took = clients["arrived"] - clients["dispatched"]
    np.testing.assert_allclose(took, seconds + trained * SLOW["seconds_per_sample"])
