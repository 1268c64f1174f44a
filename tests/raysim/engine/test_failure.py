"""Client tasks, functions of a method and evaluations that fail: what is said, and what is left of the run."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import raysim
from raysim.client_side.worker import Worker
from raysim.config.run_config import build, flatten
from raysim.errors import RaysimError
from raysim.method import ClientTask
from raysim.results.result import comparable, load_result
from raysim.running import simulation
from raysim.storage import checkpoint
from tests.own_data import QUICK, Net, three_clients
from tests.raysim.conftest import Start
from tests.small_runs import LOGISTIC, small_run, worker_of


def last_checkpoint(folder: Path) -> Path:
    return checkpoint.newest_first(folder / "checkpoints")[0]


def rounds_of(folder: Path) -> list[int]:
    return [int(number) for number in load_result(folder).rounds["round"]]


def test_nan_in_an_update_ends_the_run_and_none_of_it_is_aggregated(start: Start, tmp_path: Path) -> None:
    code, error = start("--model=mlp", "--learning_rate=1e30", "--output=run")
    assert code == 1
    assert "client 0, round 1, stage update: its update holds NaN or infinite values (first in " in error
    assert "nothing of it was aggregated. Lower training.learning_rate" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
@pytest.mark.parametrize(
    ("large", "lower"),
    [
        (("--attack.kind=sign-flip", "--attack.strength=1e40"), "attack.strength"),
        (("--privacy.kind=local", "--privacy.clip=1e30", "--privacy.noise_multiplier=1e20"), "privacy.clip"),
    ],
)
def test_options_that_make_an_update_overflow_are_named(large: tuple[str, ...], lower: str, start: Start) -> None:
    code, error = start("--method=fedavg", "--model=mlp", *large, "--output=run")
    assert code == 1
    assert f"Lower training.learning_rate or {lower}, or look at this client's data" in error


def test_a_later_failure_keeps_the_rounds_before_it(start: Start, tmp_path: Path) -> None:
    code, error = start("--method=mine:Broken", "--rounds=3", "--output=run", "--engine.checkpoint_every=100")
    assert code == 1
    assert "client 2, round 2, stage train: ZeroDivisionError: a mistake of mine" in error
    assert error.count("Traceback (most recent call last)") == 1 and "mine.py" in error
    assert error.endswith("--resume run --method mine:Broken\n")
    assert rounds_of(tmp_path / "run") == [1] and last_checkpoint(tmp_path / "run").name == "round-000001"


@pytest.mark.parametrize(
    ("where", "expected", "rounds"),
    [
        ("message", "round 1, stage message: ZeroDivisionError", None),
        ("aggregate", "round 2, stage aggregate: ZeroDivisionError", [1]),
        ("overflow", "round 2, stage aggregate: the server's new state holds NaN or infinite values", [1]),
        ("deploy", "round 1, evaluate samples 0 to ", None),
    ],
)
def test_a_failing_function_of_a_method_is_named(
    start: Start, tmp_path: Path, where: str, expected: str, rounds: list[int] | None
) -> None:
    code, error = start("--method=mine:Broken", f"--method.where={where}", "--output=run")
    assert code == 1 and expected in error
    assert ("mine.py" in error) == (where != "overflow")
    if rounds is None:
        assert not (tmp_path / "run").exists()
    else:
        assert rounds_of(tmp_path / "run") == rounds


@pytest.mark.parametrize("option", ["--method.where=message", "--ui=192.0.2.1:9"])  # in the run, and before it
def test_a_run_that_comes_to_nothing_leaves_an_empty_folder_empty(start: Start, tmp_path: Path, option: str) -> None:
    (tmp_path / "run").mkdir()
    code, error = start("--method=mine:Broken", option, "--output=run")
    assert code in (1, 2) and "--resume" not in error
    assert (tmp_path / "run").is_dir() and not list((tmp_path / "run").iterdir())
    assert start("--rounds=1", "--output=run")[0] == 0  # what was mended finds its place free


@pytest.mark.parametrize("method", ["fedavg", "fedrep"])
def test_a_model_whose_loss_is_nan_ends_the_run(tmp_path: Path, method: str) -> None:
    """Its parameters are finite, but a client has made BatchNorm's variances negative."""
    layers = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.ReLU())
    torch.nn.init.constant_(layers[0].weight, 5.0)  # type: ignore[arg-type]  # variances above the initial 1
    model = torch.nn.Sequential(OrderedDict(body=layers, head=torch.nn.Linear(6, 3)))
    given: dict[str, Any] = {"attack.kind": "sign-flip", "attack.strength": 100.0, "attack.malicious": (1,)}
    given |= {"attack.from_round": 2, "clients": three_clients(), "model": model, "output": str(tmp_path / "run")}
    with pytest.raises(RaysimError, match=r"round 2, stage evaluate: the loss of .* is NaN, so the round is dropped"):
        raysim.run(method, **given, **QUICK)
    assert rounds_of(tmp_path / "run") == [1] and last_checkpoint(tmp_path / "run").name == "round-000001"


def test_a_loss_that_leaves_out_all_samples_of_a_batch(tmp_path: Path) -> None:
    """It is NaN as a mean of none, and 0 as one number for each."""
    x, y = three_clients()[0]
    given: dict[str, Any] = {"clients": three_clients(), "test": [(x, y), (x, y), (x, y * 0)], "model": Net(), **QUICK}
    with pytest.raises(RaysimError, match=r"is NaN, .* one number for each \(reduction=\"none\"\)"):
        raysim.run("fedavg", loss=torch.nn.CrossEntropyLoss(ignore_index=0), output=str(tmp_path / "a"), **given)
    each = torch.nn.CrossEntropyLoss(ignore_index=0, reduction="none")
    result = raysim.run("fedavg", loss=each, output=str(tmp_path / "b"), **given)
    assert result.rounds["loss"].iloc[-1] > 0


def test_fine_tuning_that_diverges_is_named(tmp_path: Path) -> None:
    """One step of each client is finite, and the server hardly moves."""
    still = {"method.name": "fedavgm", "method.server_rate": 1e-30, "training.batch_size": 100}
    steep = {"model.name": "mlp", "training.learning_rate": 1e15, "evaluation.fine_tune": 3}
    with pytest.raises(RaysimError, match=r"the loss of client 0's fine-tuned model is NaN"):
        simulation.run(small_run(tmp_path / "run", LOGISTIC | still | steep))


def test_a_round_whose_evaluation_fails_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must neither be in the checkpoint without being in the tables, nor be trained twice in a row."""
    from raysim.engine.evaluation import EvaluateGlobal

    expected = raysim.run(small_run(tmp_path / "undisturbed", LOGISTIC))
    calls = 0
    original = EvaluateGlobal.run

    def fails_in_round_2(self: EvaluateGlobal, worker: Worker, inputs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise OSError("gone")
        return original(self, worker, inputs)

    monkeypatch.setattr(EvaluateGlobal, "run", fails_in_round_2)
    config = small_run(tmp_path / "run", LOGISTIC)
    with pytest.raises(RaysimError, match=r"round 2, evaluate samples .* gone"):
        raysim.run(config)
    folder = tmp_path / "run"
    assert rounds_of(folder) == [1] and last_checkpoint(folder).name == "round-000001"
    found = raysim.run(config, resume=folder)
    pd.testing.assert_frame_equal(comparable(found.rounds), comparable(expected.rounds))


def test_a_client_left_out_by_skip_counts_nothing(start: Start, tmp_path: Path) -> None:
    options = ("--method=mine:Broken", "--method.round=1", "--rounds=1", "--output=run")
    code, error = start(*options, "--engine.on_client_error=skip")
    assert code == 0 and "skipped: client 2, round 1, stage train: ZeroDivisionError" in error
    result = load_result(tmp_path / "run")
    assert list(result.clients["client"]) == [0, 1, 3] and list(result.rounds["participants"]) == [3]
    found = checkpoint.load(last_checkpoint(tmp_path / "run"), np.zeros(0, np.float32), lambda client: None).server

    config = build([flatten(result.config)])
    worker = worker_of(config)
    before = worker.model(0).take_shared()
    total, mean = 0, np.zeros(before.shape)
    for client in (0, 1, 3):
        task = ClientTask(config.seed, 1, client, 1, config.training.learning_rate, config.training, 10)
        method, data = config.method, worker.data(client)
        update, _ = method.train(worker.model(client), data, method.message(before, client), None, task)
        total += data.samples
        mean += data.samples * update.delta.astype(np.float64)
    np.testing.assert_allclose(found, before + mean / total, atol=1e-6)


def test_a_kept_state_that_is_not_finite_is_a_bad_update(start: Start, tmp_path: Path) -> None:
    code, error = start("--method=mine:BadState")
    assert code == 1 and "client 1, round 1, stage update" in error
    # Skipped, the client keeps what it had: nothing before its first good client task. That can be saved and read.
    skip = ("--engine.on_client_error=skip", "--output=run")
    assert start("--method=mine:BadState", *skip)[0] == 0
    assert start("--resume=run", "--method=mine:BadState", small=False)[0] == 0


def test_when_every_client_fails_the_reasons_are_shown(start: Start) -> None:
    code, error = start("--model=mlp", "--learning_rate=1e30", "--engine.on_client_error=skip")
    assert code == 1 and "skipped: client 3, round 1" in error and "round 1: every client failed" in error
    assert "nothing to aggregate. See why in run.log" in error and "larger cohorts" not in error


@pytest.mark.parametrize("skip", [(), ("--engine.on_client_error=skip",)])
def test_where_a_step_takes_one_update_no_client_can_be_skipped(start: Start, skip: tuple[str, ...]) -> None:
    """It was advised all the same, and ended the run by an error without a next step."""
    code, error = start("--model=mlp", "--learning_rate=1e30", "--timing.mode=async", "--devices.preset=phones", *skip)
    assert code == 1 and "a server step takes one update, so that no client can be left out of it." in error
    assert "set --timing.mode to buffered, with --timing.buffer 2 or more" in error


@pytest.mark.parametrize(
    ("kind", "found"), [("float64", "float64 array"), ("shape", "float32 array of shape"), ("dict", "dict of 1")]
)
def test_a_server_state_of_another_form_is_refused_in_round_1(
    start: Start, tmp_path: Path, kind: str, found: str
) -> None:
    wrapped = ["--compression.kind=int8"] if kind == "float64" else []
    code, error = start("--method=mine:OtherState", f"--method.kind={kind}", "--output=run", *wrapped)
    assert code == 1
    assert "round 1, stage aggregate: what aggregate returned is no state like the one of init_server" in error
    assert "server: expected float32 array of shape" in error and f"found {found}" in error
    assert "Let OtherState.aggregate return the same" in error  # with wrappers it was Wrapped's
    assert "--resume" not in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()
