"""Runs in this process: what they give, what they write, and that nothing of them stays in memory."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import raysim
from raysim.client_side.worker import Worker
from raysim.engine.rounds import Rounds
from raysim.errors import ConfigError, ResultsError
from raysim.flat_model import FlatModel
from raysim.launch import main
from raysim.report import run_page
from raysim.results.result import comparable
from raysim.workloads.federated_data import ClientData
from tests.raysim.conftest import SMALL
from tests.small_runs import LOGISTIC, small_run
from tests.watch import Watch


def test_run_returns_the_tables_that_are_in_its_folder(tmp_path: Path) -> None:
    result = raysim.run(small_run(tmp_path / "run", LOGISTIC, pictures=True))
    assert list(result.rounds["round"]) == [1, 2, 3] and len(result.clients) == 12
    pd.testing.assert_frame_equal(result.rounds, pd.read_parquet(result.folder / "rounds.parquet"))
    pd.testing.assert_frame_equal(result.clients, pd.read_parquet(result.folder / "clients.parquet"))
    assert result.summary["accuracy"] == result.rounds["accuracy"].iloc[-1]
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {"config.yaml", "environment.json", "summary.json", "curve.png", "partition.png", "report.html"}
    plain = raysim.run(small_run(tmp_path / "plain", LOGISTIC))
    pd.testing.assert_frame_equal(comparable(result.rounds), comparable(plain.rounds))


def test_options_that_nothing_reads_are_warned_of(tmp_path: Path) -> None:
    config = small_run(tmp_path / "run", LOGISTIC, workload__partition="iid", workload__alpha=0.1, schedule__rounds=1)
    with pytest.warns(UserWarning, match=r"workload\.alpha 0\.1 has no effect with workload\.partition iid"):
        raysim.run(config)
    assert "workload.alpha 0.1 has no effect" in (tmp_path / "run" / "run.log").read_text(encoding="utf-8")


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
    written = small_run(tmp_path / "config", LOGISTIC, method__name="fedprox", method__mu=0.5, schedule__rounds=2)
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


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an observer that Ctrl-C interrupts while it is made."""
    text = "import raysim\nclass Slow(raysim.Observer):\n def __init__(self):\n  raise KeyboardInterrupt\n"
    (tmp_path / "slow_observer.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "slow_observer:Slow"


@pytest.mark.parametrize("existed", [False, True])
def test_a_run_interrupted_while_an_observer_is_made_leaves_nothing(
    interrupted: str, existed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if existed:
        Path("run").mkdir()
    assert main([*SMALL, f"--observer={interrupted}", "--output=run"]) == 130
    assert "--resume" not in capsys.readouterr().err
    assert [path.name for path in Path.cwd().glob("run/**")] == (["run"] if existed else [])
    with pytest.raises(KeyboardInterrupt):
        raysim.run(small_run(Path("run"), LOGISTIC, engine__observer=[interrupted]))
    assert [path.name for path in Path.cwd().glob("run/**")] == (["run"] if existed else [])


def test_a_resumed_run_interrupted_while_an_observer_is_made_keeps_its_folder(interrupted: str) -> None:
    assert main([*SMALL, "--output=run"]) == 0
    assert main(["--resume=run", "--rounds=3", f"--observer={interrupted}"]) == 130
    assert main(["--resume=run", "--rounds=3", "--observer=[]"]) == 0
    assert len(pd.read_csv("run/rounds.csv")) == 3


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
    monkeypatch.setattr("raysim.workloads.splits.partition_report.draw_partition", fail)
    result = raysim.run(small_run(tmp_path / "run", LOGISTIC, pictures=True), observer=watch)
    assert len(result.rounds) == 3 and not (result.folder / "partition.png").exists()
    assert "the partition could not be drawn: no such font" in watch.notes


def test_evaluation_every_and_client_limit(tmp_path: Path) -> None:
    result = raysim.run(
        small_run(tmp_path / "run", LOGISTIC, schedule__rounds=5, evaluation__every=2, evaluation__client_limit=2)
    )
    assert list(result.rounds["accuracy"].notna()) == [False, True, False, True, True]
    judged = result.clients[result.clients["accuracy"].notna()]
    assert sorted(set(zip(judged["round"], judged["client"], strict=True))) == [
        (number, client) for number in (2, 4, 5) for client in (0, 2)
    ]


def test_block_size_is_the_number_of_clients_in_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from raysim.client_side.train_chunk import TrainChunk

    sizes: list[int] = []
    original = TrainChunk.run

    def counted(self: TrainChunk, worker: Worker, inputs: Any) -> Any:
        sizes.append(len(self.clients))
        return original(self, worker, inputs)

    monkeypatch.setattr(TrainChunk, "run", counted)
    raysim.run(small_run(tmp_path / "run", LOGISTIC, schedule__rounds=1, engine__block_size=2))
    raysim.run(small_run(tmp_path / "default", LOGISTIC, schedule__rounds=1))
    assert sizes == [2, 2, 1, 1, 1, 1]


def test_data_with_one_class_is_said(tmp_path: Path) -> None:
    images, labels = np.zeros((40, 8, 8), np.uint8), np.zeros(40, np.int64)
    np.savez(tmp_path / "one.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    watch = Watch()
    own: dict[str, Any] = {"workload__name": "npz", "workload__path": str(tmp_path / "one.npz")}
    own |= {"workload__limit": None, "workload__partition": "iid"}
    raysim.run(small_run(tmp_path / "run", LOGISTIC, **own, schedule__rounds=1), observer=watch)
    assert any("the training data has one class alone" in note for note in watch.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"evaluation__decompose_every": 2},
        {"method__name": "scaffold", "schedule__sampling_rate": 0.5},
        {"devices__preset": "phones", "timing__mode": "buffered", "timing__buffer": 2},
        {"devices__preset": "phones", "schedule__sampling": "power-of-choice", "schedule__sampling_rate": 0.5},
    ],
)
def test_what_a_run_held_is_free_when_it_ends(tmp_path: Path, options: dict[str, Any]) -> None:
    """By reference counts: a process of many runs need not wait for the garbage collector, which is rarely thorough."""

    def held() -> int:
        return sum(type(found) in (Rounds, FlatModel, ClientData) for found in gc.get_objects())

    gc.collect()
    before = held()
    gc.disable()
    try:
        raysim.run(small_run(tmp_path / "run", LOGISTIC, **options))
        assert held() == before
    finally:
        gc.enable()
