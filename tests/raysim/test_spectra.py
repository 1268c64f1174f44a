"""The spectral-bias picture: its numbers by hand, its files, and what is said when an option is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from raysim import spectra
from raysim.errors import FINISHED, REFUSED
from raysim.report import spectra_plot

TOY = ["--workload", "toy-graphs", "--clients", "2", "--graphs-per-client", "4"]
K3, P3 = np.array([0.0, 1.5, 1.5], np.float32), np.array([0.0, 1.0, 2.0], np.float32)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No file outside of the test's own folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path / "no data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_distances_worked_out_by_hand() -> None:
    """Of equally many values, the mean distance of the sorted ones: (0 + 1/2 + 1/2) / 3. From a single 0, the mean."""
    table = spectra_plot.distances(["K3", "P3", "point"], [K3, P3, np.zeros(1)])
    expected: list[list[float]] = [[0, 1 / 3, 1], [1 / 3, 0, 1], [1, 1, 0]]
    np.testing.assert_allclose(table, expected)
    assert list(table.index) == list(table.columns) == ["K3", "P3", "point"]


def test_a_density_has_area_one_and_a_peak_where_the_values_are() -> None:
    for values in (K3, np.zeros(5), np.array([2.0])):
        x, y = spectra_plot.density(values, 2.0)
        assert np.isclose(y.sum() * (x[1] - x[0]), 1.0)
        # The kernel's part beyond an end is reflected, so a value at the end has its peak there.
        assert abs(x[np.argmax(y)] - np.median(values)) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("clients", [1, 2, 15, 30])
def test_pictures_of_few_and_of_many_clients(clients: int) -> None:
    names = [f"client {client} $x_1$" for client in range(clients)]
    values = [K3 + 0.01 * client for client in range(clients)]
    table = spectra_plot.distances(names, values)
    picture = spectra_plot.draw(values, table, "title", "combinatorial", "png")
    assert picture.startswith(b"\x89PNG")


def test_an_svg_is_the_same_every_time() -> None:
    table = spectra_plot.distances(["a", "b"], [K3, P3])
    first, second = (spectra_plot.draw([K3, P3], table, "title", "normalized", "svg") for _ in range(2))
    assert first == second and b"<svg" in first


def test_toy_graphs_give_a_picture_and_its_numbers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spectra.main([*TOY, "--output", "toy.svg", "--laplacian=combinatorial"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("eigenvalues of 2 clients (synthetic data): toy.svg, toy.csv\n")
    assert (home / "toy.svg").read_bytes().startswith(b"<?xml")
    table = pd.read_csv(home / "toy.csv", index_col=0)
    assert list(table.index) == list(table.columns) and table.shape == (2, 2)
    np.testing.assert_array_equal(table, table.T)
    assert table.to_numpy()[0, 1] > 0 and np.diag(table).tolist() == [0, 0]


def test_the_long_form_of_an_option_is_the_same(home: Path) -> None:
    assert spectra.main([*TOY, "--output", "short.png"]) == 0
    long = ["--workload.name=toy-graphs", "--workload.clients", "2", "--workload.graphs_per_client", "4", "--seed", "0"]
    assert spectra.main([*long, "--output", "long.png"]) == 0
    assert (home / "long.png").read_bytes() == (home / "short.png").read_bytes()
    assert spectra.main([*TOY, "--seed", "1", "--output", "other.png"]) == 0
    assert (home / "other.csv").read_text() != (home / "short.csv").read_text()
    assert spectra.main([*TOY, "--seed_of=data=1,training=2", "--output", "data.png"]) == 0
    assert (home / "data.csv").read_text() == (home / "other.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--setting", "SM-CX"], "workload.setting: 'SM-CX' is not allowed. Did you mean SM-CV? Allowed: SM | SM-BIO"),
        (["--seting", "SM"], "Unknown option --seting. Did you mean --workload.setting? Sections: method, "),
        ([*TOY, "--setting", "SM"], "Unknown option --setting. --setting belongs to tudataset: choose --workload"),
        (["--laplacian", "norm"], "workload.laplacian: 'norm' is not allowed."),
        (["--workload", "tu-dataset"], "Unknown workload 'tu-dataset'. Did you mean tudataset?"),
        (["--workload", "digits"], "workload: digits has no graphs, so no spectra. Graph workloads: tudataset, ogb"),
        (["--output", "picture.jpg"], "output: 'picture.jpg' must end in .png or .svg"),
        (["--output", "nowhere/picture.png"], "output: there is no folder nowhere; make it or choose another"),
        (["--seed", "-1"], "seed: -1 is not allowed. Allowed: a whole number ≥ 0; default 0."),
        (["SM"], "Unexpected argument 'SM'. Options are written --section.option VALUE; see --help."),
        (["--test_share", "0.9", "--validation_share", "0.2"], "workload: test_share + validation_share = 1.1"),
        (["--sets", "MUTAG"], "tudataset: no files of MUTAG in "),
    ],
)
def test_bad_input_is_one_clear_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert spectra.main(words) == REFUSED
    said = capsys.readouterr().err
    assert said.startswith(f"raysim: {message}")
    assert said.count("\n") == 1


def test_help_lists_the_options_of_the_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert spectra.main(["--help"]) == FINISHED
    said = capsys.readouterr().out
    assert all(option in said for option in ("--setting", "--sets", "--laplacian", "--output", "SM | SM-BIO"))


def test_progress_is_for_people_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert spectra.main([*TOY, "--output", "toy.png"]) == 0
    assert capsys.readouterr().err == ""
