"""``python -m raysim.contribution``: utilities of coalitions by retraining, each client task once."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raysim
from raysim.config.run_config import with_sections
from raysim.contribution.__main__ import main
from raysim.contribution.coalitions import Coalitions
from raysim.errors import ConfigError
from raysim.replay.__main__ import main as replay
from raysim.running.simulation import run
from tests.attack.folders import small
from tests.own_data import QUICK, samples, seeded

SLIPS = {
    "--orders 1": "--orders 1: not allowed. Allowed: a whole number ≥ 2.",
    "--orders 3 --tolerance nan": "--tolerance nan: not allowed. Allowed: a number ≥ 0",
    "--tolerance 0.1": "--tolerance: the exact Shapley value of 3 clients has no random orders.",
    "--of leave-one-out --orders 3": "--orders: leave-one-out has no random orders.",
    "--sampler-seed=-1": "--sampler-seed -1: not allowed. Allowed: a whole number from 0 to 4294967295.",
    "--measure acuracy": "no measure 'acuracy'. Did you mean accuracy?",
    "--measure auc": "--measure auc: it is not measured in this run.",
    "--workers 0": "--workers 0: not allowed. Allowed: a whole number ≥ 1.",
    "--output /proc/none": "raysim.contribution: Cannot write /proc/none/.request.yaml.claim: No such file",
}
SYNTHETIC = {
    "workload__name": "synthetic",
    "method__name": "fedavg",
    "workload__train_size": 600,
    "workload__test_size": 200,
}
RUN: dict[str, Any] = {"schedule__rounds": 2, "engine__checkpoint_every": 2}


def test_the_utility_is_the_accuracy_of_a_run_without_the_others(tmp_path: Path) -> None:
    config = small(tmp_path / "run", **RUN, method__name="scaffold")  # its clients keep states
    coalitions = Coalitions(config, "accuracy", {})
    for without in ((), (1,), (0, 2)):
        own = with_sections(config, schedule=replace(config.schedule, without=without))
        whole = run(replace(own, output=str(tmp_path / f"{without}")))
        assert coalitions.utility(frozenset({0, 1, 2} - {*without})) == whole.rounds["accuracy"].iloc[-1]
    # Round 1 starts from one state: of its 3 + 2 + 1 tasks 3 are new. Its clients read nothing of their cohort.
    assert coalitions.tasks == (9, 3)
    loss = Coalitions(config, "loss", {})
    assert loss.utility(frozenset({0, 1, 2})) < 0
    assert 0 < coalitions.utility(frozenset()) < 0.5  # the first model, untrained


def test_equal_clients_have_equal_values_and_values_add_up(tmp_path: Path) -> None:
    """Two clients with the same data and full batches, whose tasks so have nothing random in them."""
    twin, other = samples(20, 0), samples(30, 1)
    result = raysim.run(
        "fedavg",
        model=seeded(),
        clients=[twin, twin, other],
        test=samples(200, 5),
        output=str(tmp_path / "run"),
        training={"batch_size": 64},
        **QUICK,
    )
    assert result.settings is not None
    coalitions = Coalitions(result.settings, "loss", {})
    from raysim.contribution.values import shapley

    values = shapley(coalitions.clients, coalitions.utility)
    assert values[0].value == pytest.approx(values[1].value, abs=1e-6)
    total = coalitions.utility(frozenset({0, 1, 2})) - coalitions.utility(frozenset())
    assert sum(value.value for value in values.values()) == pytest.approx(total)
    assert coalitions.utility(frozenset({0, 1, 2})) == -result.rounds["loss"].iloc[-1]


def test_the_command_goes_on_and_says_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(small(tmp_path / "run", **RUN, method__name="fedavg")).folder
    for slip, said in SLIPS.items():
        assert main([str(folder), *slip.split()]) == 2 and said in capsys.readouterr().err
    assert not (tmp_path / "run-contribution").exists()  # which the command without a slip is to have
    assert main([str(folder), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["coalitions"] == 8 and [row["client"] for row in whole["clients"]] == [0, 1, 2]
    assert np.isclose(sum(row["value"] for row in whole["clients"]), whole["v(all)"] - whole["v(none)"])
    assert whole["run"] == whole["v(all)"]
    kept = tmp_path / "run-contribution" / "utilities.csv"
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[:5]) + "0 1")  # as a kill leaves it
    assert main([str(folder), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["clients"] == whole["clients"] and again["client tasks"]["computed"] > 0
    assert kept.read_text() == "".join(lines)
    assert main([str(folder), "--orders", "5"]) == 0
    out = capsys.readouterr().out
    assert "8 coalitions; 0 client tasks computed" in out and out.count("[") == 3 and "the run itself" not in out
    assert main([str(folder), "--of", "leave-one-out"]) == 0
    assert sorted(path.name for path in kept.parent.glob("*.csv")) == [
        "leave-one-out.csv", "shapley-5-orders.csv", "shapley.csv", "utilities.csv",
    ]  # fmt: skip
    capsys.readouterr()
    assert main([str(folder), "--measure", "loss"]) == 2
    assert "holds utilities of another run, measure or device" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(Coalitions, "larger_is_better", lambda self, value: float(value) + 1e-4)
        assert main([str(folder)]) == 0  # all of it is kept, so that only what the run itself has is asked for
    assert f"the run itself has {whole['run'] + 1e-4:.4f}, not v(all)" in capsys.readouterr().out


def test_models_are_judged_on_the_data_of_the_last_round(tmp_path: Path) -> None:
    drift = {"events__drift": "features", "events__drift_factor": 0.2, "events__drift_round": 2}
    config, still = (small(tmp_path / "run", **RUN, method__name="fedavg", **more) for more in (drift, {}))
    drifted = with_sections(config, events=replace(config.events, drift_round=1))
    untrained = [Coalitions(each, "loss", {}).utility(frozenset()) for each in (config, drifted, still)]
    assert untrained[0] == untrained[1] != untrained[2]


def test_an_infinite_measure_and_a_replay_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("raysim.contribution.coalitions.evaluate_round", lambda *given: {"loss": math.inf})
    with pytest.raises(ConfigError, match="--measure loss: it is infinite for a model that some of the clients"):
        Coalitions(small(tmp_path / "run", method__name="fedavg"), "loss", {}).utility(frozenset())
    monkeypatch.undo()
    folder, target = run(small(tmp_path / "run", **RUN, method__name="fedavg")).folder, tmp_path / "replay"
    assert replay([str(folder), "--from", "2", "--set", "training.momentum=0.5", "--output", str(target)]) == 0
    assert main([str(target)]) == 2
    assert "it is a replay, whose first 1 rounds were trained with other settings" in capsys.readouterr().err


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--measure best_accuracy: the models are judged once"):
        Coalitions(small(tmp_path / "run"), "best_accuracy", {})
    with pytest.raises(ConfigError, match=r"samples_per_client: clients are filled up with copies of samples of all"):
        Coalitions(small(tmp_path / "run", **SYNTHETIC, workload__samples_per_client=400), "accuracy", {})
    with pytest.raises(ConfigError, match=r"trains on all data in one place"):
        Coalitions(small(tmp_path / "run", method__name="centralized"), "accuracy", {})
    with pytest.raises(ConfigError, match=r"schedule.without: .* is not possible with devices.preset"):
        Coalitions(small(tmp_path / "run", devices__preset="uniform"), "accuracy", {})
    with pytest.raises(ConfigError, match=r"--measure auc: it is not measured in this run. Measured: accuracy, loss, "):
        Coalitions(small(tmp_path / "run", method__name="fedavg"), "auc", {}).utility(frozenset())
