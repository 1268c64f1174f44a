"""A study's cells are computed on a GPU without a change of its file; what a result depends on stays in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from raysim import study
from raysim.config.run_config import options_of
from raysim.errors import ConfigError
from raysim.reproduce import __main__ as reproduce
from raysim.studies import whole_study
from raysim.studies.command import read
from raysim.studies.placement import NAMES, placement

STUDY = """title: Two
results: results
table: table.md
base: {workload.limit: 60, workload.clients: 2, model.name: logistic, schedule.rounds: 1, schedule.local_epochs: 1}
rows: {FedAvg: {method.name: fedavg}}
seeds: [0]
measures: {accuracy: last round}
"""


def test_no_result_depends_on_them() -> None:
    options = options_of({})
    assert all(options[name].help.placement for name in NAMES)


def test_they_are_read_as_those_of_a_run_are() -> None:
    words = ["--engine.gpus_per_client", "0.25", "--actors=3"]
    assert placement(words, "a.yaml") == {"engine.gpus_per_client": 0.25, "engine.actors": 3}
    assert placement([], "a.yaml") == {}


@pytest.mark.parametrize("word", ["--rounds", "--seed", "--engine.proof", "--nonsense", "b.yaml"])
def test_any_other_is_refused_with_those_that_may_stand_there(word: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{word}: a study file has all settings .* --engine.gpus_per_client, "):
        placement([word, "3"], "a.yaml")


def test_a_value_that_is_not_allowed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"engine.gpus_per_client: -1 is not allowed"):
        placement(["--gpus-per-client", "-1"], "a.yaml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    (tmp_path / "table.md").write_text("<!-- table study: written by raysim.study -->\n<!-- end of table -->\n")
    return path


def test_cells_have_them_over_those_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    (cell,) = whole_study._read(read([str(file), "--gpus-per-client", "0.5"], ""))[1]
    assert cell.config().engine.gpus_per_client == 0.5


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_one_sentence_and_no_failed_cells(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main([str(file), "--gpus-per-client", "0.5"]) != 0
    assert "finds no GPU" in capsys.readouterr().err
    assert not [*file.parent.rglob("*.failed.csv")]


@pytest.mark.usefixtures("no_gpu")
def test_a_table_of_a_paper_takes_the_part_of_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fedrad-joins", "--output", str(tmp_path / "made"), "--gpus-per-client", "0.5"]
    assert reproduce.main(words) != 0
    assert "finds no GPU" in capsys.readouterr().err
