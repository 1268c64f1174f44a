"""The folder of a run: one that is in use, one to go on from, and one on a disk that is full."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import raysim
from raysim import verify
from raysim.results.result import comparable, load_result
from raysim.storage import checkpoint
from raysim.workloads.errors import WorkloadError
from tests.raysim.conftest import Start
from tests.small_runs import LOGISTIC, small_run


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
    from raysim.running.open_run import prepare

    folder = prepare(small_run(tmp_path / "run", LOGISTIC))

    def fail(*arguments: object) -> None:
        raise WorkloadError("the data is gone")

    monkeypatch.setattr("raysim.workloads.images.digits.Digits.load", fail)
    code, error = start("--resume=run", small=False)
    assert code in (1, 2) and "the data is gone" in error
    assert (folder / "config.yaml").exists()


def test_a_run_that_cannot_be_made_longer_stays_as_it_is(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start("--output=run")[0] == 0
    before = (tmp_path / "run" / "config.yaml").read_bytes()

    def fail(*arguments: object) -> None:
        raise WorkloadError("the data is gone")

    monkeypatch.setattr("raysim.workloads.images.digits.Digits.load", fail)
    assert "the data is gone" in start("--resume=run", "--rounds=40", small=False)[1]
    assert (tmp_path / "run" / "config.yaml").read_bytes() == before
    assert verify.main([str(tmp_path / "run")]) == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert start("--resume=run", "--rounds=5", small=False)[0] == 0
    assert "rounds: 5" in (tmp_path / "run" / "config.yaml").read_text()
    assert verify.main([str(tmp_path / "run")]) == 0


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(27, "File too large")])
def test_a_full_disk_leaves_the_last_good_checkpoint(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    undisturbed = raysim.run(small_run(tmp_path / "undisturbed", LOGISTIC, engine__checkpoint_every=1))

    def full(path: Path, data: bytes) -> None:
        if "round-000001" not in str(path):
            path.write_bytes(data[: len(data) // 2])
            raise error
        path.write_bytes(data)

    monkeypatch.setattr(checkpoint, "write_durably", full)
    code, said = start("--output=run", "--rounds=3")
    assert code == 1 and str(error.strerror) in said and "--resume" in said and "Traceback" not in said
    folder = tmp_path / "run"
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["round-000001"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert start("--resume=run", small=False)[0] == 0
    found = load_result(folder)
    pd.testing.assert_frame_equal(comparable(found.rounds), comparable(undisturbed.rounds))
