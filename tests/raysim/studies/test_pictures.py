"""Pictures beside the table of a study: of its cells, their curves and their means."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from raysim.errors import ConfigError
from raysim.results.measures import find
from raysim.studies import curves, pictures, study_file, tables
from tests.raysim.small_study import TEXT, keep, study_of

PICTURE = """
picture:
  path: losses.png
  columns: {MLP: small, Logistic: none}
  rows: [FedAvg, Strong prox]
  measures: {local_loss: local loss, accuracy: accuracy}
  label: model
"""


def test_a_picture_shows_the_cells_that_there_are(tmp_path: Path) -> None:
    from PIL import Image

    read = study_of(tmp_path, PICTURE)
    cell = next(iter(read.cells()))
    keep(cell, accuracy=[0.1, 0.4], local_loss=[2.0, 1.5])
    assert tables.finished(read, [find("local_loss"), find("accuracy"), find("auc")]) == {
        ("FedAvg", "MLP", "local_loss"): [1.5],
        ("FedAvg", "MLP", "accuracy"): [0.4],
    }
    tables.write_table(read)
    with Image.open(tmp_path / "losses.png") as image:
        assert image.size[0] > 500


@pytest.mark.filterwarnings("error")
def test_pictures_of_an_infinite_loss_are_drawn_without_it(tmp_path: Path) -> None:
    more = (
        "curves: {path: curves.png, measure: loss, against: round}\n"
        "heat_map: {path: squares.png, measure: loss, label: loss}\n"
    )
    read = study_of(tmp_path, PICTURE.replace("local_loss: local loss", "loss: loss") + more)
    for cell in read.cells():
        keep(cell, accuracy=[0.1, 0.4], loss=[2.0, np.inf if cell.row == "FedAvg" and cell.seed else 1.5])
    tables.write_table(read)
    assert {path.name for path in tmp_path.glob("*.png")} == {"losses.png", "curves.png", "squares.png"}


@pytest.mark.parametrize(("largest", "axis"), [(4.0, "linear"), (-5000.0, "symlog")])
def test_a_value_far_from_the_others_does_not_flatten_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: float, axis: str
) -> None:
    read = study_of(tmp_path, PICTURE)
    drawn: list[Figure] = []

    def kept(figure: Figure) -> bytes:
        drawn.append(figure)
        return b""

    monkeypatch.setattr(pictures, "picture_bytes", kept)
    values = {("FedAvg", "MLP"): 1.0, ("FedAvg", "Logistic"): 2.0, ("Strong prox", "MLP"): largest}
    found = {(row, column, "local_loss"): [value] for (row, column), value in values.items()}
    assert read.picture is not None
    pictures.draw(read.picture, found, "title")
    assert drawn[0].axes[0].get_yscale() == axis


def test_a_point_is_the_mean_in_its_deviation_or_the_median_in_its_range() -> None:
    values = np.array([1.0, 2.0, 9.0])
    assert pictures.point("mean", values) == pytest.approx((4.0, 19**0.5, 19**0.5))
    assert pictures.point("median", values) == (2.0, 1.0, 7.0)
    assert pictures.point("mean", values[:1]) == (1.0, 0.0, 0.0) == pictures.point("median", values[:1])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows: [FedAvg, Strong prox]", "rows: [FedAvgg]", "no row 'FedAvgg'"),
        ("{MLP: small, Logistic: none}", "{CNN: x}", "no column 'CNN'"),
        ("label: model", "label: model\n  center: middle", "center: 'middle' is not allowed"),
        ("label: model", "lable: model", "unknown key lable. Did you mean label\\? Keys: path, columns"),
    ],
)
def test_a_picture_of_what_the_study_does_not_have_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        study_of(tmp_path, PICTURE.replace(old, new))


def test_curves_are_means_over_seeds_against_what_the_rounds_cost(tmp_path: Path) -> None:
    read = study_of(tmp_path, "curves: {path: b.png, measure: accuracy, against: virtual_seconds}")
    tables.write_table(read)
    assert not (tmp_path / "b.png").exists()  # nothing is there to draw
    for cell in read.cells():
        if cell.row == "FedAvg":
            seconds = [10.0, 20.0, 40.0 + cell.seed]
            keep(cell, accuracy=[0.2, float("nan"), 0.5 + cell.seed / 10], virtual_seconds=seconds)
        if cell.row == "FedAvg" and cell.column == "MLP" and cell.seed == 1:  # a round more, which the other lacks
            keep(cell, accuracy=[0.2, float("nan"), 0.6, 0.9], virtual_seconds=[*seconds, 90.0])
    runs = tables.by_place(tables.kept_runs(read))
    assert read.curves is not None
    means = curves.points(runs["FedAvg", "MLP"], read.curves)
    assert [*means.index] == [1, 3] and means.drop(columns="half").to_numpy().tolist() == [
        [10.0, 0.2],
        [40.5, pytest.approx(0.55)],
    ]
    # Values 0.5 and 0.6, t(0.975, 1) = 12.706205; where seeds share samples the variance is 1/n + the ratio of it.
    assert means["half"][3] == pytest.approx(12.706205 * 0.1 / 2)
    shared = curves.points(runs["FedAvg", "MLP"], read.curves, resampled=0.25)
    assert shared["half"][3] == pytest.approx(12.706205 * 0.1 / 2 * math.sqrt(1.5))
    tables.write_table(read)
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    allowed = "round, bytes, bytes_up, virtual_seconds, joules"
    with pytest.raises(ConfigError, match=rf"against: 'hours' is not allowed\. Allowed: {allowed}"):
        study_of(tmp_path, "curves: {path: b.png, measure: accuracy, against: hours}")


def test_a_row_keeps_its_color_where_another_is_missing(tmp_path: Path) -> None:
    """A row of one column alone; a column without a finished cell has no panel."""
    read = study_of(tmp_path, "curves: {path: b.png, measure: spread_accuracy, against: round}")
    table = pd.DataFrame({"round": [1, 2], "accuracy": [0.2, 0.4], "bytes_up": [1, 1], "bytes_down": [1, 1]})
    runs = {("FedAvg", "MLP"): [table], ("Strong prox", "MLP"): [table], ("Strong prox", "Logistic"): [table]}
    assert read.curves is not None
    figure = curves.draw(read.curves, runs, ["MLP", "Logistic", "CNN"], "title")
    assert figure.axes[0].get_ylabel() == "accuracy (%)"
    first, second = ([line.get_color() for line in panel.lines] for panel in figure.axes)
    assert len(first) == 2 and second == first[1:]
    legend = figure.axes[-1].get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["FedAvg", "Strong prox"]


def test_curves_of_some_rows(tmp_path: Path) -> None:
    read = study_of(tmp_path, "curves: {path: b.png, measure: accuracy, against: round, rows: [Strong prox]}")
    keep(next(read.cells()), accuracy=[0.2, 0.4])
    tables.write_table(read)
    assert not (tmp_path / "b.png").exists()  # that cell is FedAvg's
    keep(next(cell for cell in read.cells() if cell.row == "Strong prox"), accuracy=[0.2, 0.4])
    tables.write_table(read)
    assert (tmp_path / "b.png").exists()
    with pytest.raises(ConfigError, match="curves: no row 'FedProx'"):
        study_of(tmp_path, "curves: {path: b.png, measure: accuracy, against: round, rows: [FedProx]}")


@pytest.mark.parametrize("against", ["joules", "virtual_seconds", "bytes"])
def test_curves_of_kept_cells_without_these_costs_are_refused(tmp_path: Path, against: str) -> None:
    read = study_of(tmp_path, f"curves: {{path: b.png, measure: accuracy, against: {against}}}")
    keep(next(read.cells()), accuracy=[0.2, 0.4], bytes_up=[1, 2])
    message = f"small.yaml: curves: against: {against}: MLP / FedAvg has no column {against}. Against these it can be "
    with pytest.raises(ConfigError, match=f"{message}drawn: round, bytes_up. Choose"):
        tables.write_table(read)


def test_a_curve_is_of_what_its_row_shows(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    shows = "mu: 1.0, shows: {accuracy: tuned_client_accuracy_mean}}"
    more = "curves: {path: b.png, measure: accuracy, against: round}"
    path.write_text(TEXT.replace("mu: 1.0}", shows) + more, encoding="utf-8")
    read = study_file.read(path)
    for cell in read.cells():
        keep(cell, accuracy=[0.2, 0.4], tuned_client_accuracy_mean=[0.6, 0.8])
    assert read.curves is not None
    drawn = tables.drawn(read, read.curves)
    lines = {row: curves.points(own, read.curves)["value"].tolist() for (row, of), own in drawn.items() if of == "MLP"}
    assert lines == {"FedAvg": [0.2, 0.4], "Strong prox": [0.6, 0.8]}
    path.write_text(path.read_text().replace("tuned_client_accuracy_mean", "local_gain"), encoding="utf-8")
    with pytest.raises(ConfigError, match="Strong prox: shows: accuracy: local_gain has one value a run, and curves"):
        study_file.read(path)


def test_curves_against_what_clients_sent(tmp_path: Path) -> None:
    read = study_of(tmp_path, "curves: {path: b.png, measure: accuracy, against: bytes_up}")
    cell = next(read.cells())
    keep(cell, accuracy=[0.2, 0.4], bytes_up=[10, 20], bytes_down=[1000, 1000])
    assert read.curves is not None
    found = curves.points(tables.by_place(tables.kept_runs(read))["FedAvg", "MLP"], read.curves)
    assert found.drop(columns="half").to_numpy().tolist() == [[10.0, 0.2], [30.0, 0.4]]


def test_a_heat_map_has_the_mean_of_every_cell(tmp_path: Path) -> None:
    read = study_of(tmp_path, "heat_map: {path: c.png, measure: accuracy, label: accuracy}")
    assert read.heat_map is not None
    tables.write_table(read)
    assert not (tmp_path / "c.png").exists()  # nothing is there to draw
    for cell in read.cells():
        if cell.row == "FedAvg":
            keep(cell, accuracy=[0.1, {0: 0.25, 1: 0.75, 5: 0.4}[cell.seed]])
    found = tables.finished(read, [read.heat_map.measure])
    cells = pictures.cell_means(read.heat_map, found, [*read.rows], [*read.columns])
    assert cells[0].tolist() == [0.5, 0.4] and np.isnan(cells[1]).all()
    tables.write_table(read)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    for wrong, reason in (("", "heat_map: measure, label is missing"), (", measure: x, label: y", "x")):
        with pytest.raises(ConfigError, match=reason):
            study_of(tmp_path, f"heat_map: {{path: c.png{wrong}}}")
