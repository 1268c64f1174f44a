"""Runs in virtual time: the simplest is a run of rounds, and a stop between any two steps leaves no trace."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from raysim.config import registry
from raysim.config.run_config import RunConfig, build
from raysim.engine.observer import Silent
from raysim.errors import ConfigError, RaysimError
from raysim.results.costs import LEVELS
from raysim.results.result import RunResult
from raysim.running.open_run import prepare
from raysim.running.simulation import execute, run
from tests.fingerprint import fingerprint
from tests.made_subgraphs import NODE_METHODS, node_options
from tests.small_runs import small_run
from tests.watch import Watch, stopped

BASE = {
    "model.name": "logistic",
    "workload.clients": 6,
    "workload.limit": 200,
    "schedule.rounds": 7,
    "schedule.local_epochs": 2,
    "training.batch_size": 8,
    "evaluation.every": 3,
}
MODES: dict[str, dict[str, Any]] = {
    "sync": {"devices__drop_probability": 0.2},
    "deadline": {"timing__deadline": 0.7},
    "carry": {"timing__mode": "quorum", "timing__quorum": 0.5, "timing__late": "carry"},
    "over-select": {"schedule__sampling_rate": 0.5},
    "async": {"timing__concurrency": 4},
    "buffered": {"timing__buffer": 3, "timing__concurrency": 5},
}
RAGGED = ("accuracy", "loss", "train_loss", "bytes_up", "bytes_down")


def config(output: Path, mode: str, **options: Any) -> RunConfig:
    chosen = {"timing__mode": mode if mode != "carry" else "quorum", "devices__preset": "phones", **MODES[mode]}
    return small_run(output, BASE, **(chosen | options))


def columns(result: RunResult) -> dict[str, list[float]]:
    return {name: result.rounds[name].fillna(-1.0).tolist() for name in RAGGED}


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "scaffold"])
@pytest.mark.parametrize("options", [{"timing__mode": "buffered", "timing__buffer": 6}, {"timing__mode": "sync"}])
def test_equal_devices_and_a_buffer_for_all_are_rounds_bit_for_bit(
    tmp_path: Path, method: str, options: dict[str, Any]
) -> None:
    rounds = run(small_run(tmp_path / "rounds", BASE, method__name=method))
    timed = run(small_run(tmp_path / "timed", BASE, method__name=method, devices__preset="uniform", **options))
    assert columns(rounds) == columns(timed)
    for part in ("server", "states"):
        assert fingerprint(rounds.folder)[part] == fingerprint(timed.folder)[part]


@pytest.mark.parametrize("mode", ["buffered", "carry"])
def test_batch_norm_trains_with_stale_updates(tmp_path: Path, mode: str) -> None:
    """A sum of stale falls of a running variance made it negative, and the loss NaN in the third round."""
    options: dict[str, Any] = {"model__name": "mobilenet", "model__width": 0.25, "schedule__rounds": 3}
    options |= {"workload__clients": 12, "workload__limit": 400, "evaluation__every": 1}
    if mode == "buffered":
        options |= {"timing__buffer": 2, "timing__concurrency": 8}
    result = run(config(tmp_path / "run", mode, **options))
    assert np.isfinite(result.rounds["loss"]).all() and result.rounds["staleness"].max() > 0


def test_asynchronous_training_of_one_client_is_plain_training(tmp_path: Path) -> None:
    one: dict[str, Any] = {"workload__clients": 1, "workload__partition": "iid"}
    rounds = run(small_run(tmp_path / "rounds", BASE, **one))
    timed = run(config(tmp_path / "timed", "async", timing__concurrency=0, timing__mixing=1.0, **one))
    assert columns(rounds) == columns(timed)
    assert fingerprint(rounds.folder)["server"] == fingerprint(timed.folder)["server"]


METHODS = [name for name in registry.known("method") if name != "centralized"]
IN_TURN = [mode for mode in MODES if mode != "async"]


# Each in the mode that differs most from rounds, which mixes models of one client, if it can, and in one of the others.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "mode"),
    [(name, mode) for place, name in enumerate(METHODS) for mode in ("async", IN_TURN[place % len(IN_TURN)])],
)
def test_every_method_trains_in_virtual_time(tmp_path: Path, method: str, mode: str) -> None:
    small: dict[str, Any] = {"schedule__rounds": 2, "schedule__local_epochs": 1, "method__name": method}
    own = getattr(registry.resolve("method", method), "defaults", {})
    small["model__name"] = own.get("model.name", "mlp")
    if own.get("workload.name") == "toy-graphs":
        small |= {"workload__name": "toy-graphs", "workload__graphs_per_client": 8, "workload__limit": None}
    if method in NODE_METHODS:
        small |= node_options()
    if mode == "async" and build([{"method.name": method}]).method.traits.stale != "any":
        mode = "buffered"
    result = run(config(tmp_path / "run", mode, **small))
    assert len(result.rounds) == 2
    assert np.isfinite(result.rounds["loss"].iloc[-1])


WRAPPERS: dict[str, dict[str, Any]] = {
    "top-k": {"compression__kind": "top-k", "compression__error_feedback": True},
    "sign-flip": {"attack__kind": "sign-flip"},
    "median": {"defense__rule": "median"},
    "dp-sgd": {"privacy__kind": "dp-sgd", "privacy__noise_multiplier": 0.0},
    "central": {"privacy__kind": "central", "privacy__noise_multiplier": 0.0},
}
STALE = ("carry", "async", "buffered")
REFUSED = {("median", "async"), *(("central", mode) for mode in STALE)}


@pytest.mark.slow
@pytest.mark.parametrize(("wrapper", "mode"), [*itertools.product(WRAPPERS, (*STALE, "deadline"))])
def test_every_wrapper_works_in_virtual_time_or_says_why_not(tmp_path: Path, wrapper: str, mode: str) -> None:
    options = {"schedule__rounds": 2, **WRAPPERS[wrapper]}
    if (wrapper, mode) not in REFUSED:
        assert len(run(config(tmp_path / "run", mode, **options)).rounds) == 2
        return
    with pytest.raises(ConfigError, match=r"timing\.mode"):
        config(tmp_path / "run", mode, **options)


def test_clients_that_are_never_available_are_named_before_the_first_round(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps([{"available": [] if client in (1, 4) else [[0, 1e9]]} for client in range(6)]))
    watch = Watch()
    settings = small_run(tmp_path / "run", BASE, devices__preset="trace", devices__trace=str(trace))
    execute(settings, prepare(settings), watch, stopping=lambda: watch.round > 0)
    assert "2 of 6 clients are never available and never train: 1, 4" in watch.notes


def test_a_trace_that_has_changed_since_a_run_was_stopped_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("seconds_per_sample\n" + "0.1\n" * 6)
    settings = small_run(tmp_path / "run", BASE, devices__preset="trace", devices__trace=str(trace))
    folder = stopped(settings, 3)
    trace.write_text("seconds_per_sample\n" + "0.2\n" * 6)
    with pytest.raises(RaysimError, match=r"made with other settings: SHA-256 of devices.trace: [0-9a-f]{64} →"):
        run(settings, resume=folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "mode"),
    [
        ("fedavg", "sync"),
        ("fedavg", "async"),
        ("fedavg", "buffered"),
        ("fedprox", "carry"),
        ("fedrad", "buffered"),
        ("fedrad", "over-select"),
        ("fedld", "buffered"),
        ("ifca", "async"),
        ("feddyn", "async"),
        ("fedld", "deadline"),
        ("scaffold", "buffered"),
        ("scaffold", "async"),
        ("local", "buffered"),
        ("local", "carry"),
    ],
)
def test_a_run_that_was_stopped_and_resumed_has_the_same_bits(tmp_path: Path, method: str, mode: str) -> None:
    whole = run(config(tmp_path / "whole", mode, method__name=method))
    settings = config(tmp_path / "stopped", mode, method__name=method, engine__checkpoint_every=2)
    folder = stopped(settings, rounds=3)
    assert any((folder / "checkpoints").rglob("server-after-*")) == settings.timing.stale
    assert run(settings, resume=folder).folder == folder
    assert fingerprint(folder) == fingerprint(whole.folder)


@pytest.mark.parametrize(("method", "mode"), [("fedavg", "buffered"), ("scaffold", "async"), ("fedavg", "carry")])
def test_a_run_that_is_trained_longer_takes_what_was_under_way(tmp_path: Path, method: str, mode: str) -> None:
    expected = fingerprint(run(config(tmp_path / "straight", mode, method__name=method)).folder)
    folder = run(config(tmp_path / "longer", mode, method__name=method, schedule__rounds=3)).folder
    prepare(config(tmp_path / "longer", mode, method__name=method), resume=folder)
    assert execute(config(tmp_path / "longer", mode, method__name=method), folder, Silent()).status == "finished"
    assert fingerprint(folder) == expected


def test_the_tables_tell_of_time_staleness_energy_and_devices(tmp_path: Path) -> None:
    result = run(config(tmp_path / "run", "buffered", devices__watts=2.0))
    rounds, clients = result.rounds, result.clients
    assert (np.diff(rounds["virtual_seconds"]) >= 0).all()
    assert (rounds["participants"] == 3).all()
    for number, own in clients.groupby("round"):
        row = rounds[rounds["round"] == number].iloc[0]
        assert row["staleness"] == pytest.approx(own["staleness"].mean())
        assert row["joules"] == pytest.approx(2.0 * (own["arrived"] - own["dispatched"]).sum())
        assert row["virtual_seconds"] == own["arrived"].max()
    assert clients["staleness"].max() > 0
    assert result.summary["virtual_seconds"] == rounds["virtual_seconds"].iloc[-1]
    assert result.summary["joules"] == pytest.approx(rounds["joules"].sum())
    assert rounds["bytes_down"].iloc[0] == 2 * rounds["bytes_up"].iloc[0]  # three are back, and all six were sent it
    devices = pd.read_csv(result.folder / "devices.csv")
    seconds = devices["communication_seconds"] + 2 * devices["epoch_seconds"]  # two local epochs
    first = clients[clients["round"] == 1]
    assert (first["arrived"] - first["dispatched"]).tolist() == pytest.approx(seconds[first["client"]].tolist())


def test_what_an_accuracy_cost_is_in_the_summary_and_on_the_page(tmp_path: Path) -> None:
    result = run(config(tmp_path / "run", "buffered", evaluation__every=1, schedule__rounds=12, pictures=True))
    best = float(result.rounds["accuracy"].max())
    cost, costs = result.cost_of(best), result.summary["costs_to_accuracies"]
    assert cost is not None and cost["virtual_seconds"] in result.rounds["virtual_seconds"].tolist()
    assert [row["accuracy"] for row in costs] == [level for level in LEVELS if level <= best] != []
    page = (result.folder / "report.html").read_text()
    assert "Accuracy against what it cost" in page and "Devices of the clients" in page


def test_what_is_lost_and_late_counts_in_bytes_and_energy(tmp_path: Path) -> None:
    rounds = run(config(tmp_path / "run", "over-select")).rounds
    assert (rounds["participants"] == 3).all()
    assert (rounds["clients_late"] == 1).all()  # ⌈1.3 · 3⌉ are sampled
    assert rounds["bytes_down"].tolist() == (rounds["bytes_up"] / 3 * 4).tolist()


@pytest.mark.parametrize("mode", ["async", "buffered", "carry"])
def test_columns_of_stale_updates_mean_what_the_page_says(tmp_path: Path, mode: str) -> None:
    """docs/time.md, "Tables": weights are shares before staleness, and who may go on is not late."""
    result = run(config(tmp_path / "run", mode))
    assert (result.rounds["clients_late"] == 0).all() and result.clients["staleness"].max() > 0
    for _, own in result.clients.groupby("round"):
        assert own["weight"].tolist() == pytest.approx((own["samples"] / own["samples"].sum()).tolist())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"timing__mode": "async"}, "timing.mode: async needs to know when clients are back"),
        ({"timing__buffer": 3}, "timing.buffer: 3 has no effect with timing.mode sync"),
        (
            {"timing__mode": "buffered", "timing__deadline": 3.0, "devices__preset": "phones"},
            "timing.deadline: 3.0 has no effect with timing.mode buffered",
        ),
        (
            {"timing__mode": "deadline", "devices__preset": "phones"},
            "timing.deadline: 0 with timing.mode deadline. Set it",
        ),
        (
            {"timing__mode": "buffered", "timing__concurrency": 4, "devices__preset": "phones"},
            "timing.buffer: 10 updates of different clients, with timing.concurrency 4",
        ),
        ({"devices__preset": "trace"}, "devices.trace: empty with devices.preset trace"),
        ({"devices__bandwidth_up": 0.0}, "devices.bandwidth_up: 0.0 is not allowed. Allowed: a finite number > 0"),
        (
            {"devices__preset": "phones", "timing__mode": "async", "evaluation__decompose_every": 1},
            "evaluation.decompose_every: 1 compares the models of one round",
        ),
        (
            {
                "devices__preset": "phones",
                "timing__mode": "async",
                "training__optimizer_state": "kept",
                "training__momentum": 0.5,
            },
            "training.optimizer_state: kept with timing.mode async",
        ),
        (
            {"devices__preset": "uniform", "method__name": "centralized"},
            "devices.preset: uniform is not possible with method centralized",
        ),
    ],
)
def test_settings_that_contradict_one_another(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small_run(tmp_path / "run", BASE, **options)
    assert text in str(caught.value)
