from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from raysim.workloads.splits.partition_report import BARS, draw_partition


def manifest(clients: int, classes: int = 3, synthetic: bool = False, filled: int = 0) -> pandas.DataFrame:
    counts = np.random.default_rng(0).integers(1, 20, size=(clients, classes))
    table = pandas.DataFrame({"client": np.arange(clients), "name": [f"client {i}" for i in range(clients)]})
    table["samples"] = counts.sum(axis=1)
    table["test_samples"] = 1
    for label in range(classes):
        table[f"class_{label}"] = counts[:, label]
    table["filled"] = filled
    table.attrs = {"workload": "w", "synthetic": synthetic, "class_names": [f"kind {i}" for i in range(classes)]}
    return table


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, path: Path) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (4, 3), (100, 12), (BARS + 1, 40)])
def test_any_number_of_clients_and_classes_gives_a_picture(clients: int, classes: int, tmp_path: Path) -> None:
    draw_partition(manifest(clients, classes), tmp_path / "partition.png", "title")
    picture = imread(tmp_path / "partition.png")
    assert picture.shape[0] > 300
    assert picture.shape[1] > 300
    colors = np.rint(picture * 255).astype(np.uint8).view(np.uint32)  # red, green, blue and alpha as one number
    assert len(np.unique(colors)) > 3


def test_bars_are_the_counts(tmp_path: Path, drawn: list[Figure]) -> None:
    table = manifest(4)
    draw_partition(table, tmp_path / "partition.png", "four clients")
    axes = drawn[0].axes[0]
    heights = np.array([[bar.get_height() for bar in group] for group in axes.containers])
    assert np.array_equal(heights, table[["class_0", "class_1", "class_2"]].to_numpy().T)
    tops = [bar.get_y() + bar.get_height() for bar in axes.containers[-1]]
    assert tops == table["samples"].tolist()
    assert axes.get_title() == "four clients"
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["kind 2", "kind 1", "kind 0"]


def test_synthetic_data_is_named_once_and_copies_are_marked(tmp_path: Path, drawn: list[Figure]) -> None:
    draw_partition(manifest(4, synthetic=True, filled=2), tmp_path / "a.png", "speed")
    draw_partition(manifest(4, synthetic=True), tmp_path / "b.png", "synthetic: iid")
    assert drawn[0].axes[0].get_title() == "speed (synthetic data)"
    assert "own, without copies" in [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert drawn[1].axes[0].get_title() == "synthetic: iid"


def test_real_names_label_the_bars(tmp_path: Path, drawn: list[Figure]) -> None:
    table = manifest(2)
    table["name"] = ["north", "south"]
    draw_partition(table, tmp_path / "a.png", "sites")
    assert [label.get_text() for label in drawn[0].axes[0].get_xticklabels()] == ["north", "south"]


def test_a_dollar_in_a_site_name_is_text(tmp_path: Path) -> None:
    """matplotlib would read $\\frac$ as a formula, and fail."""
    table = manifest(2)
    table["name"] = [r"$\frac$", "a $ b $"]
    draw_partition(table, tmp_path / "a.png", r"$\undefined$")
    assert imread(tmp_path / "a.png").size
