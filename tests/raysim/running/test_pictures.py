"""The curve and the page are drawn beside the end of a run, and not of one that does not finish."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from raysim.config.run_config import RunConfig, build
from raysim.report import plots, run_page
from raysim.running.pictures import Pictures
from tests.processes import within
from tests.raysim.report.pages import make

MADE = ("curve.png", "report.html")


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    for module in (plots, run_page):
        monkeypatch.setattr(module, "run_picture", lambda *_: b"picture")
    return build([{"schedule.rounds": 2}])


def test_it_draws_once_the_summary_is_there_and_waits_for_the_rest_of_the_folder(
    tmp_path: Path, config: RunConfig
) -> None:
    folder = make(tmp_path / "run")
    summary = (folder / "summary.json").rename(tmp_path / "summary.json")
    pictures = Pictures(config, folder)
    pictures.round_finished({"round": 1})
    pictures.round_finished({"round": 2})
    assert not (folder / "curve.png").exists()
    summary.rename(folder / "summary.json")
    assert within(120, (folder / "curve.png").exists) and not (folder / "report.html").exists()
    (folder / "partition.csv").write_text("client,name,samples,class_0\n0,client 0,7,7\n")
    pictures.ended("finished")
    assert pictures.finish() == "finished"
    assert "Training samples of 1 client by class" in (folder / "report.html").read_text()


def test_a_run_that_ends_early_is_drawn_at_its_end(tmp_path: Path, config: RunConfig) -> None:
    pictures = Pictures(config, folder := make(tmp_path / "run", rounds=1))
    pictures.ended("finished")
    assert pictures.finish() == "finished" and all((folder / name).exists() for name in MADE)


@pytest.mark.parametrize("status", ["stopped", "failed"])
def test_a_run_that_does_not_finish_has_no_page(tmp_path: Path, config: RunConfig, status: str) -> None:
    pictures = Pictures(config, folder := make(tmp_path / "run", finish=False))
    pictures.round_finished({"round": 2})
    pictures.ended(status)
    assert pictures.finish() == status and not any((folder / name).exists() for name in MADE)


@pytest.mark.parametrize(("owner", "name"), [(plots, "run_picture"), (importlib, "import_module")])
def test_an_error_of_the_drawing_is_the_callers(
    tmp_path: Path, config: RunConfig, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no such font")

    pictures = Pictures(config, make(tmp_path / "run"))
    monkeypatch.setattr(owner, name, fail)
    pictures.ended("finished")
    with pytest.raises(OSError, match="no such font"):
        pictures.finish()
