"""The published benchmarks: that their cases fit raysim's options, and their rows; none is run here."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import published
from raysim.config.command_line import parse
from raysim.running.simulation import run
from raysim.storage.proof_file import PROOF_NAME, read_proof
from tests.small_runs import LOGISTIC, small_run


@pytest.mark.parametrize("name", list(published.CASES))
def test_every_case_is_accepted(name: str, tmp_path: Path) -> None:
    case = published.CASES[name]
    config = parse(case.words(3, tmp_path)).config
    assert (config.schedule.rounds, config.seed) == (3, 0)
    assert config.training.batch_size == case.settings["training.batch_size"]


def test_a_row_has_the_rounds_the_seconds_beside_them_and_the_head_of_the_proof(tmp_path: Path) -> None:
    run(small_run(tmp_path / "run", LOGISTIC))
    found = published.measured(tmp_path / "run", 100.0)
    assert found["rounds"] == 3
    assert found["seconds_rounds"] + found["seconds_start_and_end"] == pytest.approx(100.0, abs=0.02)
    assert 0 < float(found["accuracy"]) < 1
    assert found["digest"] == read_proof(tmp_path / "run" / PROOF_NAME)[-1].head


def test_rows_are_added_below_one_header(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.csv"
    for rounds in (1, 2):
        published.add(path, {"case": "x", "rounds": rounds})
    with path.open(newline="") as file:
        assert [row["rounds"] for row in csv.DictReader(file)] == ["1", "2"]
    with pytest.raises(SystemExit, match=r"rows\.csv has other columns than these rows \(case, turns\)"):
        published.add(path, {"case": "x", "turns": 3})


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["published", "flute"])
    with pytest.raises(SystemExit) as ended:
        published.main()
    assert ended.value.code == 2
    assert "no case 'flute'; there are: pfl-cifar10," in capsys.readouterr().err
