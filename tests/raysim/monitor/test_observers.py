"""Observers by name: from a shell, from Python and from a study; their errors, and whose code is imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import raysim
from raysim import launch
from raysim.config.command_line import parse
from raysim.config.config_file import naming_words
from raysim.engine.observer import Observer
from raysim.errors import ConfigError, RaysimError
from raysim.running.simulation import run
from raysim.studies.study_file import read
from tests.small_runs import LOGISTIC, small_run, words

HERE = "tests.raysim.monitor.test_observers:"
STARTED: list[str] = []


class Counting(Observer):
    """Writes down what it is told, beside the run's folder."""

    def __init__(self, folder: Path) -> None:
        self.file = folder.with_name("counted.txt")

    def round_finished(self, row: Mapping[str, Any]) -> None:
        self._add(f"round {row['round']}")

    def close(self) -> None:
        self._add("closed")

    def _add(self, text: str) -> None:
        with self.file.open("a") as file:
            print(text, file=file)


class Plain(Observer):
    """Takes no folder."""

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        STARTED.append(f"round {round}")


class Failing(Observer):
    """Raises in the second round."""

    def round_finished(self, row: Mapping[str, Any]) -> None:
        if row["round"] == 2:
            raise ValueError("enough")


class Unmade(Observer):
    """Cannot be made."""

    def __init__(self) -> None:
        raise ValueError("no disk")


class NoObserver:
    """Has none of the functions."""


def _words(output: Path, *more: str) -> list[str]:
    return [*words(LOGISTIC | {"backend": "inline", "output": output, "pictures": False, "method": "fedavg"}), *more]


def test_several_are_named_in_a_shell(tmp_path: Path) -> None:
    STARTED.clear()
    more = ["--observer", f"{HERE}Counting", "--observer", f"{HERE}Plain"]
    assert launch.main(_words(tmp_path / "run", *more)) == 0
    assert (tmp_path / "counted.txt").read_text().split("\n")[:-1] == ["round 1", "round 2", "round 3", "closed"]
    assert STARTED == ["round 1", "round 2", "round 3"]


def test_python_names_them_too(tmp_path: Path) -> None:
    STARTED.clear()
    settings = LOGISTIC | {"engine.backend": "inline", "output": str(tmp_path / "run"), "pictures": False}
    raysim.run({"method": "fedavg", **settings}, observer=f"{HERE}Plain")
    assert len(STARTED) == 3


def test_one_that_raises_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main(_words(tmp_path / "run", "--observer", f"{HERE}Failing")) == 1
    assert "observer Failing.round_finished: ValueError: enough" in capsys.readouterr().err
    assert (tmp_path / "run" / "rounds.csv").exists()


def test_one_that_cannot_be_made_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main(_words(tmp_path / "run", "--observer", f"{HERE}Unmade")) == 1
    assert f"observer {HERE}Unmade: ValueError: no disk" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mlfow", r"engine\.observer: 'mlfow' is not known\. Did you mean mlflow\? Known: mlflow, tensorboard"),
        (f"{HERE}NoObserver", r"NoObserver has no function note\. Let it inherit from raysim\.Observer"),
        (f"{HERE}Missing", r"does not define 'Missing'"),
        ("no_such_module:Log", r"observer 'no_such_module:Log': cannot import"),
        ("tensorboard,tensorboard", r"engine\.observer: tensorboard is there twice"),
    ],
)
def test_a_name_that_no_observer_has_is_refused(tmp_path: Path, name: str, message: str) -> None:
    config = small_run(tmp_path / "run", LOGISTIC | {"engine.observer": name})
    with pytest.raises(ConfigError, match=message):
        run(config)
    assert not (tmp_path / "run").exists()


def test_without_the_package_it_is_said_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.monitor.observers.find_spec", lambda name: importlib.util.find_spec("no_such_package"))
    config = small_run(tmp_path / "run", LOGISTIC | {"engine.observer": "mlflow"})
    with pytest.raises(ConfigError, match=r"the package mlflow of mlflow is not installed\. Install it with pip"):
        run(config)
    assert not (tmp_path / "run").exists()


def test_an_experiment_without_an_observer_has_no_effect(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"engine\.experiment: mine has no effect with engine\.observer empty"):
        small_run(tmp_path / "run", LOGISTIC | {"engine.experiment": "mine"})


def test_a_file_alone_cannot_bring_code(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"engine: {{observer: [tensorboard, '{HERE}Plain']}}\n")
    with pytest.raises(ConfigError, match="names code of its own: observer 'tensorboard,tests"):
        parse(["--config", str(file)])
    assert parse(["--config", str(file), "--observer", "[]"]).config.engine.observer == ()
    assert parse(["--config", str(file), "--trust", str(tmp_path)]).config.engine.observer[1] == f"{HERE}Plain"
    assert naming_words({"engine.observer": ["tensorboard", "mine:Log"]}) == " --engine.observer tensorboard,mine:Log"


def test_a_resumed_run_asks_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = LOGISTIC | {"engine.observer": f"{HERE}Plain"}
    run(small_run(folder, settings))
    with pytest.raises(RaysimError, match="names code of its own: observer"):
        parse(["--resume", str(folder), "--rounds", "4"])
    assert parse(["--resume", str(folder), "--observer", f"{HERE}Plain"]).config.engine.observer == (f"{HERE}Plain",)


def test_a_study_is_an_experiment(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    text = (
        "title: Two methods\nresults: results\ntable: table.md\nseeds: [0]\nmeasures: {accuracy: last}\n"
        "rows: {A: {method.name: fedavg}, B: {method.name: local}}\nbase: {engine.observer: OBSERVER}\n"
    )
    file.write_text(text.replace("OBSERVER", "tensorboard"))
    assert {cell.config().engine.experiment for cell in read(file).cells()} == {"Two methods"}
    file.write_text(text.replace("OBSERVER", f"'{HERE}Plain'"))
    with pytest.raises(ConfigError, match="names code of its own: observer"):
        read(file)


def test_files_of_earlier_versions_name_tensorboard(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("engine: {tensorboard: true}\n")
    assert parse(["--config", str(file)]).config.engine.observer == ("tensorboard",)
    file.write_text("engine: {tensorboard: false}\n")
    assert parse(["--config", str(file)]).config.engine.observer == ()
