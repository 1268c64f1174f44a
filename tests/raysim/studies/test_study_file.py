"""Study files: their options, and one sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim import study
from raysim.errors import ConfigError
from raysim.studies import cell_run, failures, study_file, tables
from tests.raysim.small_study import HERE, TEXT


def test_a_row_may_have_settings_of_one_column(small: Path) -> None:
    text = TEXT.replace(
        "Strong prox: {method.name: fedprox, method.mu: 1.0}",
        "Strong prox: {method.name: fedprox, in: {MLP: {method.mu: 2.0}}}",
    )
    small.write_text(text, encoding="utf-8")
    found = {(cell.column, cell.row): cell.config().method for cell in study_file.read(small).cells()}
    assert found["MLP", "Strong prox"].mu == 2.0 and found["Logistic", "Strong prox"].mu == 0.01
    small.write_text(text.replace("in: {MLP", "in: {CNN"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"in: no column 'CNN'\. There are MLP, Logistic"):
        study_file.read(small)


def test_a_column_may_have_some_rows_alone(small: Path) -> None:
    text = TEXT.replace("model.name: mlp}", "model.name: mlp, rows: [Strong prox]}")
    small.write_text(text, encoding="utf-8")
    found = [(cell.column, cell.row) for cell in study_file.read(small).cells()]
    assert found == 2 * [("MLP", "Strong prox")] + [("Logistic", "FedAvg"), ("Logistic", "Strong prox")]
    small.write_text(text.replace("rows: [Strong prox]", "rows: [Strong prix]"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"columns: MLP: rows: no row 'Strong prix'\. Did you mean Strong prox"):
        study_file.read(small)


def test_options_may_follow_the_seed(small: Path) -> None:
    small.write_text(TEXT.replace("seeds: [0, 1]", "seeds: [0, 1]\nper_seed: [method.mu]"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"Unknown option method\.mu"):  # which FedAvg does not have
        study_file.read(small)
    text = TEXT.replace("seeds: [0, 1]", "seeds: [3, 2]\nper_seed: [workload.clients]")
    small.write_text(text.replace("  workload.clients: 3\n", ""), encoding="utf-8")
    found = [(cell.seed, cell.config()) for cell in study_file.read(small).cells()]
    assert {seed for seed, _ in found} >= {3, 2}
    assert all(config.workload.clients == config.seed == seed for seed, config in found)


@pytest.mark.parametrize(
    ("option", "place"),
    [("workload.clients", "base"), ("model.name", "columns: MLP"), ("method.mu", "rows: Strong prox")],
)
def test_an_option_that_follows_the_seed_has_no_other_value(small: Path, option: str, place: str) -> None:
    """A value that a row gave it was never read."""
    text = TEXT.replace("seeds: [0, 1]", f"seeds: [0, 1]\nper_seed: [{option}]")
    small.write_text(text.replace("FedAvg: {method.name: fedavg}", "FedProx: {method.name: fedprox}"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        study_file.read(small)
    assert str(caught.value) == (
        f"{small}: {place}: {option} is each cell's seed (per_seed), and has no other value. Leave one out."
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{accuracy: last,", "{accuracyy: last,", "measures: no measure 'accuracyy'. Did you mean accuracy?"),
        ("{accuracy: last,", "{seconds_round: last,", "times are not among them"),
        ("{accuracy: last,", "{best_participants: last,", "no value is better than another"),
        ("{accuracy: last,", "{accuracy: 3,", "measures: accuracy: 3 is not allowed"),
        ("{accuracy: last,", "{gain: {title: gain, unit: meters},", "measures: gain: unit: 'meters' is not allowed"),
        ("measures: {accuracy: last, best_accuracy: best}", "measures: 7", "measures: 7 is not allowed"),
        ("title: Small", "title: [1]", "title: [1] is not allowed. Allowed: text."),
        ("title: Small", "title: Small\nlatex: 3", "latex: 3 is not allowed. Allowed: text."),
        ("title: Small", "title: Small\ncsv: [1]", "csv: [1] is not allowed. Allowed: text."),
        (
            "title: Small",
            "title: Small\nheat_map: {path: 1, measure: accuracy, label: a}",
            "heat_map: path: 1 is not allowed. Allowed: text.",
        ),
        (
            "title: Small",
            "title: Small\ncurves: {path: [1], measure: accuracy, against: round}",
            "curves: path: entry 1: 1 is not allowed. Allowed: a path that ends in .png, .svg, .pdf.",
        ),
        (
            "title: Small",
            "title: Small\ncurves: {path: {a: b.svg}, measure: accuracy, against: round}",
            "curves: path: {'a': 'b.svg'} is not allowed. Allowed: a list, [A, B].",
        ),
        ("seeds: [0, 1]", "seed: [0, 1]", "seeds"),
        ("seeds: [0, 1]", "seeds: [0, 1]\nresampled: {test: 0, training: 9}", "resampled: test: 0 is not allowed"),
        (
            "seeds: [0, 1]",
            "seeds: [0]\nresampled: {test: 1, training: 9}\nstatistics: true",
            "signed ranks do not know",
        ),
        ("seeds: [0, 1]", "seeds: 3", "seeds: 3 is not allowed. Allowed: a list"),
        ("seeds: [0, 1]", "seeds: [0, x]", "seeds: entry 2: 'x' is not allowed. Allowed: a whole number"),
        ("seeds: [0, 1]", "seeds: [0, -1]", "seeds: entry 2: -1 is not allowed. Allowed: a whole number ≥ 0"),
        ("seeds: [0, 1]", "seeds: [1, 1]", "seeds: [1, 1] is not allowed. Allowed: a list of different whole numbers"),
        ("seeds: [0, 1]", "seeds: []", "seeds: [] is not allowed. Allowed: at least one entry"),
        ("title: Small\n", "", "title is missing. Keys: title, results, table"),
        ("seeds: [5]", "seeds: five", "columns: Logistic: seeds: 'five' is not allowed"),
        ("rows:\n", "rows: text\nrows2:\n", "unknown key rows2. Did you mean rows?"),
        (
            "  Strong prox: {",  # the first row's three cells were dropped without a word
            "  FedAvg: {",
            "line 15: the key FedAvg is there a second time (the first is in line 14), and only the last would count",
        ),
        ("title: Small", "title: Small\ntitle: Large", "line 3: the key title is there a second time"),
        ("FedAvg: {method.name: fedavg}", "FedAvg: fedavg", "rows: FedAvg: 'fedavg' is not allowed"),
        ("FedAvg: {method.name: fedavg}", "1: {method.name: fedavg}", "rows: the name 1 is no text"),
        ("FedAvg: {method.name: fedavg}", "strong-prox: {method.name: fedavg}", "gives the same file name as"),
        ("method.mu: 1.0", "method.my: 1.0", "rows: Strong prox: Unknown option method.my. Did you mean method.mu?"),
        ("method.mu: 1.0", "method.mu: high", "rows: Strong prox: method.mu: 'high' is not allowed"),
        ("model.name: mlp}", "model.name: mpl}", "columns: MLP: Unknown model 'mpl'"),
        ("schedule.rounds: 2", "schedule.rounds: two", "base: schedule.rounds: 'two' is not allowed"),
        ("schedule.rounds: 2", "schedule.rounds: 2\n  seed: 4", "base: a study has seeds"),
        ("schedule.rounds: 2", "schedule.rounds: 2\n  schedule: {rounds: 3}", "base: schedule.rounds is given twice"),
        ("{method.name: fedavg}", "{method: fedavg, method.name: fedprox}", "rows: FedAvg: method.name is given twice"),
        ("FedAvg: {method.name: fedavg}", "FedAvg: {method: 'no.such:Method'}", "names code of its own"),
        ("method.mu: 1.0", "shows: {acuracy: auc}", "rows: Strong prox: shows: no measure 'acuracy'. Did you mean"),
        ("method.mu: 1.0", "shows: {accuracy: aucc}", "rows: Strong prox: shows: accuracy: no measure 'aucc'"),
        (
            "method.mu: 1.0",
            "paper: {MLP: {accuracy: '81,4 ± 0,3'}}",
            "paper: MLP: accuracy: '81,4 ± 0,3' is not allowed",
        ),
        ("method.mu: 1.0", "shows: {accuracy: loss}", "accuracy: loss is in plain, and the column in percent"),
    ],
)
def test_a_mistake_in_a_study_is_one_sentence(
    small: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first run."""
    monkeypatch.setattr(cell_run, "run_cell", lambda *rest: pytest.fail("ran a cell"))
    small.write_text(TEXT.replace(old, new), encoding="utf-8")
    assert study.main([str(small), *HERE]) == 2
    said = capsys.readouterr().err
    assert str(small) in said and message in said and "Traceback" not in said


def test_names_are_short_enough_for_all_files_of_a_cell(small: Path) -> None:
    """The file of a failure is the longest; at the first cell the advice was to free space."""
    for name, column, fits in (("x" * 230, "MLP", True), ("x" * 231, "MLP", False), ("x", "y" * 237, False)):
        small.write_text(TEXT.replace("Strong prox", name).replace("MLP", column), encoding="utf-8")
        if fits:
            cells = list(study_file.read(small).cells())
            assert max(len(f"{failures.place(cell).name}.partial") for cell in cells) == 255
            continue
        with pytest.raises(ConfigError, match=r"its file's name has 237 characters\. Allowed: 236\. Choose shorter"):
            study_file.read(small)


def test_a_study_says_how_many_samples_seeds_draw_anew(small: Path) -> None:
    small.write_text(TEXT + "resampled: {test: 1, training: 8, folds: 10}\n", encoding="utf-8")
    found = tables.outcomes(study_file.read(small), {})
    assert (found.resampled, found.folds) == (0.125, 10)


def test_a_study_that_is_not_there_or_no_text_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name, message in (("absent.yaml", "there is no such file"), ("binary.yaml", "cannot be read")):
        assert study.main([str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
