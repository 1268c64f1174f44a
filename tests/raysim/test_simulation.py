"""Runs in this process: what they write, what stops them, and what a stopped one leaves."""

from __future__ import annotations

import gc
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import raysim
from raysim import seeds
from raysim.config.run_config import RunConfig, build
from raysim.engine.rounds import Rounds
from raysim.engine.worker import Worker
from raysim.errors import ConfigError, RaysimError, ResultsError
from raysim.flat_model import FlatModel
from raysim.launch import main
from raysim.method import ClientTask
from raysim.report import run_page
from raysim.storage import checkpoint
from raysim.storage.run_folder import comparable, load_result
from tests.raysim.conftest import SMALL, Start
from tests.small_runs import small_run
from tests.watch import Watch
from workloads.errors import WorkloadError
from workloads.federated_data import ClientData


def last_checkpoint(folder: Path) -> Path:
    found = checkpoint.latest(folder / "checkpoints")
    assert found is not None
    return found


def server_of(path: Path) -> Any:
    return checkpoint.load(path, np.zeros(0, np.float32), lambda client: None).server


def rounds_of(folder: Path) -> list[int]:
    return [int(number) for number in load_result(folder).rounds["round"]]


BASE = {
    "model.name": "logistic",
    "workload.clients": 4,
    "workload.limit": 200,
    "schedule.rounds": 3,
    "schedule.local_epochs": 1,
}


def small(tmp_path: Path, name: str = "run", **options: Any) -> RunConfig:
    return small_run(tmp_path / name, BASE, **options)


# -- what a run gives -----------------------------------------------------------------------------------------------


def test_run_returns_the_tables_that_are_in_its_folder(tmp_path: Path) -> None:
    result = raysim.run(small(tmp_path, pictures=True))
    assert list(result.rounds["round"]) == [1, 2, 3] and len(result.clients) == 12
    pd.testing.assert_frame_equal(result.rounds, pd.read_parquet(result.folder / "rounds.parquet"))
    pd.testing.assert_frame_equal(result.clients, pd.read_parquet(result.folder / "clients.parquet"))
    assert result.summary["accuracy"] == result.rounds["accuracy"].iloc[-1]
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {"config.yaml", "environment.json", "summary.json", "curve.png", "partition.png", "report.html"}
    plain = raysim.run(small(tmp_path, "plain"))
    pd.testing.assert_frame_equal(comparable(result.rounds), comparable(plain.rounds))


def test_settings_may_be_a_plain_dict(tmp_path: Path) -> None:
    nested = {
        "method": {"name": "fedprox", "mu": 0.5},
        "model": "logistic",
        "workload": {"clients": 4, "limit": 200},
        "engine": {"backend": "inline"},
        "schedule.rounds": 2,
        "schedule.local_epochs": 1,
        "pictures": False,
    }
    result = raysim.run(nested | {"output": str(tmp_path / "run")})
    written = small(tmp_path, "config", method__name="fedprox", method__mu=0.5, schedule__rounds=2)
    pd.testing.assert_frame_equal(comparable(result.rounds), comparable(raysim.run(written).rounds))
    assert result.config["method"]["mu"] == 0.5
    longer = raysim.run({"schedule.rounds": 3}, resume=tmp_path / "run")
    assert len(longer.rounds) == 3 and longer.config["method"]["mu"] == 0.5
    with pytest.raises(ResultsError, match=r"method\.mu: 0\.5 → 0\.1"):
        raysim.run({"method.mu": 0.1}, resume=tmp_path / "run")
    with pytest.raises(ConfigError, match=r"Unknown option method\.muu.*method\.mu\b"):
        raysim.run(nested | {"method.muu": 0.1})
    with pytest.raises(ConfigError, match=r"method: .* is not allowed"):
        raysim.run(["fedprox"])
    with pytest.raises(ConfigError, match=r"no config\.yaml"):
        raysim.run({}, resume=tmp_path)


def test_a_dict_that_resumes_runs_no_code_that_only_the_folder_names(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("method: {name: 'evil:Method'}")
    with pytest.raises(ConfigError, match=r"method 'evil:Method'.*If you know it, name it in the settings too"):
        raysim.run({}, resume=tmp_path)


def test_a_run_without_pictures_names_the_command_that_draws_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, f"--output={tmp_path / 'run'}"]) == 0
    assert f"python -m raysim.report {tmp_path / 'run'}" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert not names & {"curve.png", "partition.png", "report.html"} and "partition.csv" in names
    run_page.page(tmp_path / "run")


def test_a_picture_that_cannot_be_drawn_costs_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("no such font")

    watch = Watch()
    monkeypatch.setattr("workloads.partition_report.draw_partition", fail)
    result = raysim.run(small(tmp_path, pictures=True), observer=watch)
    assert len(result.rounds) == 3 and not (result.folder / "partition.png").exists()
    assert "the partition could not be drawn: no such font" in watch.notes


def _flat(nested: dict[str, Any]) -> dict[str, object]:
    from raysim.config.run_config import flatten

    return flatten(nested)


def test_evaluation_every_and_client_limit(tmp_path: Path) -> None:
    result = raysim.run(small(tmp_path, schedule__rounds=5, evaluation__every=2, evaluation__client_limit=2))
    assert list(result.rounds["accuracy"].notna()) == [False, True, False, True, True]
    judged = result.clients[result.clients["accuracy"].notna()]
    assert sorted(set(zip(judged["round"], judged["client"], strict=True))) == [
        (number, client) for number in (2, 4, 5) for client in (0, 2)
    ]


def test_block_size_is_the_number_of_clients_in_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from raysim.engine.client_task import TrainChunk

    sizes: list[int] = []
    original = TrainChunk.run

    def counted(self: TrainChunk, worker: Worker, inputs: Any) -> Any:
        sizes.append(len(self.clients))
        return original(self, worker, inputs)

    monkeypatch.setattr(TrainChunk, "run", counted)
    raysim.run(small(tmp_path, schedule__rounds=1, engine__block_size=2))
    raysim.run(small(tmp_path, "default", schedule__rounds=1))
    assert sizes == [2, 2, 1, 1, 1, 1]


# -- failures in a client task ------------------------------------------------------------------------------------


def test_nan_in_an_update_ends_the_run_and_none_of_it_is_aggregated(start: Start, tmp_path: Path) -> None:
    code, error = start("--model=mlp", "--learning_rate=1e30", "--output=run")
    assert code == 1
    assert "client 0, round 1, stage update: its update holds NaN or infinite values (first in " in error
    assert "nothing of it was aggregated. Lower training.learning_rate" in error
    assert not (tmp_path / "run").exists()


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


def test_a_round_whose_evaluation_fails_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must neither be in the checkpoint without being in the tables, nor be trained twice in a row."""
    from raysim.engine.evaluation import EvaluateGlobal

    expected = raysim.run(small(tmp_path, "undisturbed"))
    calls = 0
    original = EvaluateGlobal.run

    def fails_in_round_2(self: EvaluateGlobal, worker: Worker, inputs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise OSError("gone")
        return original(self, worker, inputs)

    monkeypatch.setattr(EvaluateGlobal, "run", fails_in_round_2)
    config = small(tmp_path)
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
    found = server_of(last_checkpoint(tmp_path / "run"))

    config = build([_flat(result.config)])
    federation = config.workload.load(lambda purpose: seeds.numpy_generator(config.seed, purpose))
    worker = Worker(config, federation)
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


# -- folders and resume ---------------------------------------------------------------------------------------------


def test_a_folder_in_use_is_refused_and_left_alone(start: Start, tmp_path: Path) -> None:
    assert start("--output=run")[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    code, error = start("--output=run", "--seed=1")
    assert code == 2 and "already holds a run" in error and "--resume run" in error
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    code, error = start("--output=mine")
    assert code == 2 and "not empty" in error
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


def test_resume_of_what_is_no_run(start: Start, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for name in ("photos", "nowhere"):
        code, error = start(f"--resume={name}", small=False)
        assert code == 2 and "not the folder of a run" in error
    (tmp_path / "photos" / "config.yaml").write_text("camera: old\n")
    code, error = start("--resume=photos", small=False)
    assert code == 2 and "Unknown option camera" in error


def test_resume_with_other_settings_lists_them(start: Start, tmp_path: Path) -> None:
    start("--output=run")
    code, error = start("--resume=run", "--learning_rate=0.5", "--seed=3", small=False)
    assert code == 2
    assert "training.learning_rate: " in error and "→ 0.5\n" in error and "seed: 0 → 3" in error
    assert (tmp_path / "run" / "summary.json").exists()
    options = (
        "--engine.actors=3",
        "--engine.dashboard=false",
        "--engine.checkpoint_every=7",
        "--engine.backend=inline",
    )
    assert start("--resume=run", *options, small=False)[0] == 0


def test_a_resumed_folder_is_never_removed(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that was killed before its first round."""
    from raysim.preparation import prepare

    folder = prepare(small(tmp_path))

    def fail(*arguments: object) -> None:
        raise WorkloadError("the data is gone")

    monkeypatch.setattr("workloads.images.digits.Digits.load", fail)
    code, error = start("--resume=run", small=False)
    assert code in (1, 2) and "the data is gone" in error
    assert (folder / "config.yaml").exists()


def test_a_full_disk_leaves_the_last_good_checkpoint(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = raysim.run(small(tmp_path, "undisturbed", engine__checkpoint_every=1))

    def full(path: Path, data: bytes) -> None:
        if "round-000001" not in str(path):
            path.write_bytes(data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr(checkpoint, "write_durably", full)
    code, error = start("--output=run", "--rounds=3")
    assert code == 1 and "No space left" in error and "--resume" in error and "Traceback" not in error
    folder = tmp_path / "run"
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["round-000001"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert start("--resume=run", small=False)[0] == 0
    found = load_result(folder)
    pd.testing.assert_frame_equal(comparable(found.rounds), comparable(undisturbed.rounds))


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_is_told_like_a_full_disk(tmp_path: Path) -> None:
    """The kernel's own refusal, in a process of its own."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    options = ["--method=fedavg", "--model=mlp", "--model.hidden=400", "--workload.clients=2", "--workload.limit=60"]
    command = [sys.executable, "-m", "raysim.launch", *options, "--engine.backend=inline", "--output=run"]
    found = subprocess.run(command, cwd=tmp_path, preexec_fn=limit, capture_output=True, text=True, timeout=120)
    assert found.returncode == 1
    assert "File too large" in found.stderr and "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("kind", "found"), [("float64", "float64 array"), ("shape", "float32 array of shape"), ("dict", "dict of 1")]
)
def test_a_server_state_of_another_form_is_refused_in_round_1(
    start: Start, tmp_path: Path, kind: str, found: str
) -> None:
    code, error = start("--method=mine:OtherState", f"--method.kind={kind}", "--output=run")
    assert code == 1
    assert "round 1, stage aggregate: what aggregate returned is no state like the one of init_server" in error
    assert "server: expected float32 array of shape" in error and f"found {found}" in error
    assert "--resume" not in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()


def test_data_with_one_class_is_said(tmp_path: Path) -> None:
    images, labels = np.zeros((40, 8, 8), np.uint8), np.zeros(40, np.int64)
    np.savez(tmp_path / "one.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    watch = Watch()
    own: dict[str, Any] = {
        "workload__name": "npz",
        "workload__path": str(tmp_path / "one.npz"),
        "workload__limit": None,
    }
    own |= {"workload__limit": None, "workload__partition": "iid"}
    raysim.run(small(tmp_path, **own, schedule__rounds=1), observer=watch)
    assert any("the training data has one class alone" in note for note in watch.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"evaluation__decompose_every": 2},
        {"method__name": "scaffold", "schedule__sampling_rate": 0.5},
        {"devices__preset": "phones", "timing__mode": "buffered", "timing__buffer": 2},
    ],
)
def test_what_a_run_held_is_free_when_it_ends(tmp_path: Path, options: dict[str, Any]) -> None:
    """By reference counts: a process of many runs need not wait for the garbage collector, which is rarely thorough."""

    def held() -> int:
        return sum(type(found) in (Rounds, FlatModel, ClientData) for found in gc.get_objects())

    base = {"model.name": "logistic", "workload.clients": 4, "workload.limit": 100, "schedule.rounds": 3}
    gc.collect()
    before = held()
    gc.disable()
    try:
        raysim.run(small_run(tmp_path / "run", base, **options))
        assert held() == before
    finally:
        gc.enable()
