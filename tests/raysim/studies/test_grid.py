"""Grids: every combination of options' values as a row, from a file and from the command line."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from raysim import study
from raysim.errors import ConfigError, ResultsError
from raysim.studies import command, study_file
from tests.raysim.small_study import TEXT, keep

GRID = TEXT[: TEXT.index("columns:")] + "seeds: [0, 1]\nmeasures: {accuracy: last}\n"


def read(folder: Path, grid: str, text: str = GRID) -> study_file.Study:
    path = folder / "small.yaml"
    path.write_text(f"{text}grid: {grid}\n", encoding="utf-8")
    return study_file.read(path)


def test_every_combination_is_a_row_with_its_options(tmp_path: Path) -> None:
    found = read(tmp_path, "{model: [mlp, logistic], training.learning_rate: [0.1, 0.01]}")
    names = ["mlp, learning_rate 0.1", "mlp, learning_rate 0.01", "logistic, learning_rate 0.1"]
    assert [*found.rows] == [*names, "logistic, learning_rate 0.01"]
    cells = list(found.cells())
    assert len(cells) == 8 and cells[0].path == tmp_path / "results" / "mlp-learning-rate-0.1-seed0.csv"
    assert cells[1].name == "mlp, learning_rate 0.01 / seed 0"
    config = cells[-1].config()
    assert (config.training.learning_rate, config.seed) == (0.01, 1) and "Logistic" in type(config.model).__name__


def test_an_option_that_a_method_does_not_have_is_left_out_and_said(tmp_path: Path) -> None:
    found = read(tmp_path, "{method: [fedavg, fedprox], mu: [0.01, 0.1]}")
    assert [*found.rows] == ["fedavg", "fedprox, mu 0.01", "fedprox, mu 0.1"]
    assert found.rows["fedprox, mu 0.1"] == {"method.name": "fedprox", "method.mu": 0.1}
    assert found.notes == ("fedavg has no mu, which is left out there: 3 rows in the place of 4",)


def test_columns_and_a_grid_go_together(tmp_path: Path) -> None:
    columns = "columns: {MLP: {model.name: mlp}, Logistic: {model.name: logistic}}\n"
    found = read(tmp_path, "{mu: [1.0]}", GRID.replace("base:\n", f"{columns}base:\n  method.name: fedprox\n"))
    assert [cell.place for cell in found.cells()] == ["MLP / mu 1.0"] * 2 + ["Logistic / mu 1.0"] * 2
    some = columns.replace("mlp}", "mlp, rows: [mu 1.0]}")
    with pytest.raises(ConfigError, match="columns: MLP: rows: a grid has all of its rows in every column"):
        read(tmp_path, "{mu: [1.0]}", GRID.replace("base:\n", f"{some}base:\n  method.name: fedprox\n"))


def test_the_table_of_a_study_without_columns_has_no_name_of_one(tmp_path: Path) -> None:
    found = read(tmp_path, "{method: [fedavg, fedprox]}")
    for cell in found.cells():
        keep(cell, accuracy=[0.5 + cell.seed / 10])
    assert study.main([str(tmp_path / "small.yaml"), "--table-only"]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| % | last |\n|---|---|\n| fedavg | 55.00 ± 7.07 (2) |" in page


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("{method: [fedavg], muu: [1]}", "grid: Unknown option muu."),
        ("{method: [fedavg], mu: [1]}", "grid: Unknown option mu. mu belongs to"),
        ("{method: [fedprox], mu: [high]}", "grid: method.mu: 'high' is not allowed"),
        ("{method: [fedprox], mu: [1, 1.0]}", "grid: mu: 1.0 is there twice"),
        ("{method: [fedprox, fedprox]}", "grid: method: fedprox is there twice"),
        ("{method: [fedprox], mu: [0.1], method.mu: [1.0]}", "grid: method.mu is there twice, in two spellings"),
        ("{learning_rate: [0.1], learning-rate: [0.2]}", "grid: training.learning_rate is there twice, in"),
        ("{method: [fedavg], method.name: [fedprox]}", "grid: method.name is there twice, in two"),
        ("{method: [fedprx]}", "grid: Unknown method 'fedprx'"),
        ("{seed: [1, 2]}", "grid: seed: a study has seeds"),
        ("{method: fedprox}", "grid: method: 'fedprox' is not allowed. Allowed: a list"),
        ("{method: []}", "grid: method: [] is not allowed. Allowed: at least one entry"),
        ("{method: ['no.such:Method']}", "names code of its own"),
        ("{mu: [1]}\nrows: {a: {}}", "a study has either rows"),
    ],
)
def test_a_mistake_in_a_grid_is_one_sentence(tmp_path: Path, grid: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, grid)
    assert message in str(caught.value) and str(tmp_path / "small.yaml") in str(caught.value)


WORDS = ["--grid", "method=fedavg,fedprox", "--grid", "mu=0.01,0.1", "--seeds", "0-1,7", "--limit", "200", "--rounds=2"]


def test_a_grid_of_the_command_line_is_a_study_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--output", str(tmp_path / "grid"), "--model", "logistic", "--table-only"]
    assert study.main(words) == 0
    said = capsys.readouterr()
    assert "Grid of method, mu: 0 of 9 cells are there" in said.out and "note: fedavg has no mu" in said.err
    found = study_file.read(tmp_path / "grid" / "study.yaml")
    config = next(cell for cell in found.cells() if cell.row == "fedprox, mu 0.1" and cell.seed == 7).config()
    assert (config.workload.limit, config.schedule.rounds, config.method.mu) == (200, 2, 0.1)
    assert study.main(words) == 0  # the same again goes on
    assert study.main([*words, "--rounds", "3"]) == 2
    assert "study.yaml is another study" in capsys.readouterr().err


def test_curves_show_the_first_measure_that_rounds_have(tmp_path: Path) -> None:
    for number, (first, drawn) in enumerate((("tail_loss", "tail_loss"), ("rounds_to_0.5", "loss"))):
        words = [*WORDS, "--output", str(tmp_path / str(number)), "--model", "logistic", "--table-only"]
        assert study.main([*words, "--measure", first, "--measure", "loss"]) == 0
        curves = study_file.read(tmp_path / str(number) / "study.yaml").curves
        assert curves is not None and curves.measure.name == drawn
    assert command._drawn(["local_gain"]) == "accuracy"
    assert command._drawn(["absolute_error_at_epoch_2"]) == "absolute_error"
    with pytest.raises(ConfigError, match="'local_gain' is not allowed: it has one value a run"):
        read(tmp_path, "{mu: [1.0]}\ncurves: {path: a.svg, measure: local_gain, against: round}", GRID)


def test_a_grid_with_a_mistake_leaves_nothing_and_can_be_given_again(tmp_path: Path) -> None:
    words = [*WORDS, "--output", str(tmp_path / "grid"), "--model", "logistic"]
    assert study.main([*words, "--measure", "acuracy"]) == 2
    assert study.main([*words, "--measure", "auc"]) == 2  # which no cell is sure to have
    assert not (tmp_path / "grid").exists()
    assert study.main([*words, "--table-only"]) == 0
    assert study.main([*words, "--table-only", "--measure", "acuracy"]) == 2
    assert (tmp_path / "grid" / "study.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--table-only"], "give a study file, or a grid"),
        (["--gpus_per_client", "0.1", "rates.yaml"], "rates.yaml: a study file comes first, its options after it"),
        (["--grid", "mu=1"], "--output FOLDER is missing"),
        (["--grid", "mu", "--output", "x"], "--grid mu: not allowed"),
        (["--grid", "mu=2020-99-99", "--output", "x"], "--grid mu=2020-99-99: not allowed"),
        (["--grid", "mu=!!timestamp x", "--output", "x"], "--grid mu=!!timestamp x: not allowed"),
        (["--grid", "mu=0.1,", "0.01", "--output", "x"], "'0.01'. Values of --grid have commas and no blanks between"),
        (["--rounds", "5", "--grid", "mu=0.1", ",1", "--output", "x"], "',1'. Values of --grid have commas and no"),
        (["--grid", "foo=1", "--output", "x"], "raysim: --grid: Unknown option foo. Sections: "),
        (["--grid", "rounds=1", "--seeds", "4-1", "--output", "x"], "--seeds 4-1: not allowed"),
        (["--grid", "method=fedavg", "--output", "x", "--muu", "3"], "Unknown option --muu"),
        (["--grid", "method=fedavg", "--output", "x", "--resume", "y"], "only options of runs"),
        (["--grid", "mu=0.1,1", "--output", "x", "--method", "fedprox", "--mu", "5"], "--method.mu: the grid has its"),
        (["--grid", "method.mu=1", "--output", "x", "--method", "fedprox", "--mu=5"], "--method.mu: the grid has its"),
        (["--grid", "learning-rate=1", "--output", "x", "--learning_rate", "2"], "--training.learning_rate: the grid"),
        (["--grid", "method=fedavg", "--output", "x", "--method", "fedprox"], "--method.name: the grid has its values"),
        (
            ["--grid", "mu=1,2", "--output", "x", "--method", "fedprox", "--privacy.clip", "1"],
            "privacy.clip: 1.0 has no effect with privacy.kind none",  # the default, but typed
        ),
        (["file.yaml", "--grid", "mu=1"], "--grid: a study file has all settings in it"),
        (["file.yaml", "--rounds", "1"], "--rounds: a study file has all settings in it"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert study.main(words) == 2
    assert message in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_a_default_may_be_typed_that_a_row_reads_and_stands_in_kept_grids(tmp_path: Path) -> None:
    words = ["--method", "fedavg", "--grid", "sampling=fixed,power-of-choice", "--table-only", "--output"]
    assert study.main([*words, str(tmp_path / "read"), "--candidates", "2"]) == 0
    assert study.main([*words, str(tmp_path / "kept")]) == 0
    file = tmp_path / "kept" / "study.yaml"
    file.write_text(file.read_text().replace("{method.name: fedavg}", "{method.name: fedavg, privacy.clip: 1.0}"))
    assert study.main([*words, str(tmp_path / "kept"), "--privacy.clip", "1"]) == 0


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "grid"):
        assert study.main(["--method", "fedprox", "--grid", "mu=0.1,1", "--output", str(place)]) == 2
        assert f"{tmp_path / 'file'} is a file, where a folder is needed." in capsys.readouterr().err
    with pytest.raises(ResultsError, match=r"Cannot write .*study\.yaml"):
        command.keep_request(Path("/proc/none/study.yaml"), {"seeds": [0]}, "another")
    assert (tmp_path / "file").read_text() == "mine"


def test_processes_that_begin_at_once_have_one_request(tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def begin(number: int) -> None:
        for attempt in range(20):
            together.wait(60)
            command.keep_request(tmp_path / str(attempt) / "study.yaml", {"seeds": [0, 1]}, "another")

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(begin, range(3))) == [None] * 3
    assert {path.name for path in tmp_path.glob("*/*")} == {"study.yaml"}
