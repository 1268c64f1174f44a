"""Checks before the first cell: kept cells of other settings, and measures that no cell can have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from raysim import study
from raysim.config.run_config import RunConfig, to_yaml
from raysim.engine.observer import Silent
from raysim.errors import ConfigError
from raysim.running import preflight
from raysim.studies import cell_run, study_file, whole_study
from raysim.studies.checks import check_cell, check_data, check_measures
from tests.raysim.small_study import HERE, TEXT, fake_run, keep, study_of


def test_two_cells_of_one_name_are_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the failure of one, say, would be told of both."""
    text = small.read_text(encoding="utf-8")
    text = text[: text.index("columns:")] + (
        "columns: {A: {}, A / B: {}}\nseeds: [0]\nmeasures: {accuracy: last}\n"
        "rows: {B / C: {method.name: fedavg}, C: {method.name: fedprox}}\n"
    )
    small.write_text(text, encoding="utf-8")
    assert study.main([str(small)]) == 2
    assert "two cells are both named 'A / B / C / seed 0'. Take the slash out" in capsys.readouterr().err


def test_a_cell_made_with_other_settings_is_not_mixed_in(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell_run.run_cell(next(study_file.read(small).cells()), Silent(), lambda: False)
    small.write_text(TEXT.replace("schedule.rounds: 2", "schedule.rounds: 3"), encoding="utf-8")
    assert study.main([str(small), "--table-only"]) == 2
    message = capsys.readouterr().err
    assert "fedavg-seed0.csv was made with other settings" in message
    assert "schedule.rounds: 2 → 3" in message


MISSING = TEXT.replace("base:", "base:\n  workload.name: fashion-mnist\n  workload.path: nowhere")


@pytest.mark.parametrize("more", ["", "per_seed: [workload.limit]\n"])
def test_data_that_is_missing_is_said_once_before_the_first_cell(
    tmp_path: Path, more: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study of 70 cells started them all, and printed the same sentence 140 times."""
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    looked, look = list[int](), preflight.check_data

    def noted(config: RunConfig) -> object:
        looked.append(config.seed)
        return look(config)

    monkeypatch.setattr(preflight, "check_data", noted)
    path = tmp_path / "small.yaml"
    other = "" if more else "  workload.limit: 200\n"
    path.write_text(MISSING.replace("  workload.limit: 200\n", other) + more, encoding="utf-8")
    assert study.main([str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "MLP / FedAvg / seed 0: fashion-mnist is not to be had from nowhere" in said
    assert [*tmp_path.iterdir()] == [path] and looked == [0]
    text = TEXT.replace("  workload.limit: 200\n", other)
    path.write_text(text + more, encoding="utf-8")
    check_data(list(study_file.read(path).cells()))
    assert looked == [0, 0]  # once for all six cells, also where the limit is each one's seed
    path.write_text(text.replace("seeds: [5]", "seeds: [5], workload.clients: 2"), encoding="utf-8")
    check_data(list(study_file.read(path).cells()))
    assert looked == [0, 0, 0, 5]


def test_a_grid_without_its_data_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    words = ["--grid", "method=fedavg,fedprox", "--output", "new/grid"]
    assert study.main([*words, "--workload", "fashion-mnist", "--path", "nowhere"]) == 2
    assert not [*tmp_path.iterdir()]


def test_a_cell_kept_with_an_earlier_name_of_an_option_is_still_the_same(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    text = TEXT.replace("base:\n", "base:\n  workload.name: mnist\n  workload.data_dir: there\n")
    path.write_text(text, encoding="utf-8")
    cell = next(study_file.read(path).cells())
    assert cell.config().workload.path == "there"
    keep(cell, accuracy=[0.5])
    kept = cell.path.with_suffix(".yaml")
    kept.write_text(to_yaml(cell.config()).replace("  path: there", "  data_dir: there"), encoding="utf-8")
    check_cell(cell)
    kept.write_text(kept.read_text().replace("data_dir: there", "data_dir: elsewhere"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"workload\.path: elsewhere → there"):
        check_cell(cell)


def test_what_an_earlier_version_kept_is_compared_as_far_as_its_options_are_there(small: Path) -> None:
    cell = next(study_file.read(small).cells())
    cell.path.parent.mkdir(parents=True)
    cell.path.write_text("round\n1\n")
    kept = "method: {name: fedavg}\nworkload: {limit: 200, clients: 3}\nschedule: {rounds: 2}\nmodel: {name: mlp}\n"
    cell.path.with_suffix(".yaml").write_text(f"{kept}engine: {{vectorise: 0}}\nseed: 0\n")
    check_cell(cell)
    cell.path.with_suffix(".yaml").write_text(f"{kept}evaluation: {{auc: true}}\nseed: 0\n")
    check_cell(cell)  # auto, which is the study's, may add a column and changes no other
    cell.path.with_suffix(".yaml").write_text(f"{kept}evaluation: {{every: 2}}\nseed: 0\n")
    with pytest.raises(ConfigError, match=r"evaluation\.every: 2 → 1"):
        check_cell(cell)


@pytest.mark.parametrize(
    ("measure", "row", "refused"),
    [
        ("auc: AUC", "", True),
        ("auc: AUC", "evaluation.auc: true", False),
        ("f1: {title: F1, unit: plain}", "", True),
        ("system_loss: {title: loss, unit: plain}", "", True),
        ("system_loss: {title: loss, unit: plain}", "method.name: fedrad", False),
        ("virtual_seconds: time", "devices.preset: phones", False),
    ],
)
def test_a_measure_that_no_cell_can_have_is_found_before_the_first(
    small: Path,
    measure: str,
    row: str,
    refused: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was said after the last cell."""
    made: list[str] = []

    monkeypatch.setattr(cell_run, "run_cell", fake_run(made))
    text = TEXT.replace("{accuracy: last", f"{{{measure}, accuracy: last")
    small.write_text(text.replace("rows:\n", f"rows:\n  More: {{{row}}}\n" if row else "rows:\n"), encoding="utf-8")
    assert study.main([str(small), *HERE]) == (2 if refused else 0)
    said = capsys.readouterr().err
    name = measure.partition(":")[0]
    assert (f"measures: {name}: no cell is sure to have the column {name}" in said) == refused == (not made)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("compare", "compare: [{rows: [Strong prox], against: FedAvg, measure: auc}]"),
        ("heat_map", "heat_map: {path: h.png, measure: auc, label: AUC}"),
        ("picture", "picture: {path: p.png, columns: {MLP: x}, rows: [FedAvg], measures: {auc: AUC}, label: l}"),
        ("curves", "curves: {path: c.svg, measure: auc, against: round}"),
    ],
)
def test_a_measure_of_a_difference_or_a_picture_that_no_cell_can_have_is_found(
    tmp_path: Path, key: str, more: str
) -> None:
    """There was no picture and no table of differences, and nothing was said."""
    with pytest.raises(ConfigError, match=f"small: {key}: auc: no cell is sure to have the column auc"):
        check_measures(study_of(tmp_path, more))
    check_measures(study_of(tmp_path, more.replace("auc", "loss")))


def test_every_study_of_the_tree_can_have_its_measures() -> None:
    for file in sorted((Path(__file__).parents[3] / "docs" / "studies").glob("*.yaml")):
        check_measures(study_file.read(file))


def test_curves_against_a_cost_that_a_row_will_not_have_are_refused(tmp_path: Path) -> None:
    """It was a KeyError after the last cell."""
    more = "curves: {path: b.png, measure: accuracy, against: joules}\n"
    with pytest.raises(ConfigError) as error:
        check_measures(study_of(tmp_path, more))
    assert "small.yaml: curves: against: joules: MLP / FedAvg has no column joules. Against these it can be" in str(
        error.value
    )
    assert "drawn: round, bytes, bytes_up. Choose one of them" in str(error.value)
    devices = TEXT.replace("mu: 1.0}", "mu: 1.0, devices.preset: phones}")
    (tmp_path / "own.yaml").write_text(devices + more.replace("}", ", rows: [Strong prox]}"), encoding="utf-8")
    check_measures(study_file.read(tmp_path / "own.yaml"))


def test_cells_of_other_settings_that_came_meanwhile_are_noticed(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second process may have begun before the file was edited, when no cell was finished."""

    def computed(cells: list[study_file.Cell], *_: object) -> dict[str, str]:
        for cell in cells:
            keep(cell, accuracy=[0.5])
            cell.path.with_suffix(".yaml").write_text(to_yaml(replace(cell.config(), seed=7)), encoding="utf-8")
        return {}

    monkeypatch.setattr(whole_study, "compute", computed)
    assert study.main([str(small), *HERE]) == 1
    assert "was made with other settings (seed: 7 → 0)" in capsys.readouterr().err
    assert not (small.parent / "page.md").exists()


def test_a_measure_that_cannot_choose_is_refused_before_the_cells(tmp_path: Path) -> None:
    grid = "grid: {mu: [0.1, 1.0]}\nchoose: {options: [mu], measure: validation_accuracy}\n"
    text = (
        TEXT[TEXT.index("title") : TEXT.index("columns")] + "  workload.validation_share: 0.2\n  method.name: fedprox\n"
    )
    (tmp_path / "study.yaml").write_text(f"{text}{grid}seeds: [0]\nmeasures: {{accuracy: last}}\n", encoding="utf-8")
    found = study_file.read(tmp_path / "study.yaml")
    assert found.choice is not None
    check_data([*found.cells()], found.choice.measure)
    unknown = replace(found.choice.measure, column="validation_regret")
    with pytest.raises(ConfigError, match=r"choose: measure .* has no column validation_regret.* validation_accuracy"):
        check_data([*found.cells()], unknown)
