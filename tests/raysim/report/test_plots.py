"""Pictures of tables: what is drawn, in which color."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

import raysim
from raysim.report import compare
from raysim.report.canvas import NARROW
from raysim.report.plots import _Line, _mean_line, chart_picture, comparison_picture, run_picture
from tests.raysim.report.pages import colored, frame, make, pixels, size


def test_curve_draws_each_series_that_is_there() -> None:
    rounds = frame(
        accuracy=[np.nan, 0.5, 0.9], loss=[np.nan, 2.0, 1.0], train_loss=[3.0, 2.0, 1.0], epochs_total=[1, 5, 9]
    )
    png = run_picture(rounds, "digits")
    assert size(png) == (960, 960)
    assert colored(png, "#0072b2") > 500 and colored(png, "#d55e00") > 500
    without = run_picture(rounds.drop(columns="train_loss"), "digits")
    assert colored(without, "#d55e00") < 50
    assert colored(without, "#ffffff") > 100_000


def test_the_accuracy_of_a_personal_method_is_drawn_once() -> None:
    same = run_picture(frame(accuracy=[0.1, 0.4], client_accuracy_mean=[0.1, 0.4]), "")
    assert colored(same, "#0072b2") < 50 and colored(same, "#d55e00") > 500


@pytest.mark.parametrize(
    "rounds",
    [
        pandas.DataFrame(),
        frame(accuracy=[np.nan, np.nan]),
        frame(accuracy=[0.5], loss=[1.0], epochs_total=[2]),
        frame(accuracy=[0.1, 0.2], loss=[np.inf, 1e30]),
    ],
)
def test_odd_tables_still_give_a_picture(rounds: pandas.DataFrame) -> None:
    assert size(run_picture(rounds, "a $title_ {of} \\any kind")) == (960, 960)


def test_overlaid_runs_have_their_own_colors_and_any_label() -> None:
    runs = [(label, [frame(accuracy=[0.1, level], loss=[1.0, level])]) for label, level in (("_a$", 0.5), ("b", 0.9))]
    png = comparison_picture(runs, "two")
    for color in ("#0072b2", "#d55e00"):
        assert colored(png, color) > 500


def test_a_setting_without_an_accuracy_leaves_its_color_in_the_picture_of_costs(tmp_path: Path) -> None:
    """Both pictures of a page give a setting the same color; the second of three has no global accuracy."""
    for name, batch in (("a", 16), ("b", 32), ("c", 64)):
        folder = make(tmp_path / name, more=f"training: {{batch_size: {batch}}}\nseed: 0\n")
        if name == "b":
            table = pandas.read_csv(folder / "rounds.csv").drop(columns="accuracy")
            table.to_csv(folder / "rounds.csv", index=False)
    target = compare.write_page(raysim.compare([tmp_path / name for name in "abc"]), tmp_path / "page.html")
    curves, costs = target.read_text().split("<h2>")[1:3]
    assert {name for name in ("c0", "c1", "c2") if f"--{name})" in curves} == {"c0", "c1", "c2"}
    assert {name for name in ("c0", "c1", "c2") if f"--{name})" in costs} == {"c0", "c2"}


def test_the_band_of_seeds_is_drawn() -> None:
    tables = [frame(accuracy=[0.2 + lift, 0.5 + lift], loss=[1.0, 0.5]) for lift in (0.0, 0.2)]
    assert not np.array_equal(
        pixels(comparison_picture([("a", tables)], "")),
        pixels(comparison_picture([("a", [frame(accuracy=[0.3, 0.6], loss=[1.0, 0.5])])], "")),
    )


def test_a_mean_over_seeds_ends_where_one_of_them_ends() -> None:
    """A seed that goes on alone would move the mean to its own values, with a band of no width."""
    short, long = (_Line("a", np.arange(1, n + 1), np.full(n, level), 0) for n, level in ((2, 0.5), (4, 0.9)))
    mean = _mean_line([short, long])
    assert mean.x.tolist() == [1, 2] and mean.y.tolist() == pytest.approx([0.7, 0.7])
    assert mean.band is not None and mean.band.tolist() == pytest.approx([0.282843, 0.282843], abs=1e-6)


def test_stacked_values_of_many_rounds_are_areas() -> None:
    """A bar for each of thousands of rounds would take most of a minute at the end of a run."""
    parts = {}
    for count in (20, 101):
        ones = np.ones(count)
        drawn = chart_picture(frame(seconds_train=ones, seconds_aggregate=2 * ones), "phases", NARROW)
        parts[count] = [drawn.count(f"var(--c{place})".encode()) for place in range(3)]
    assert max(parts[20]) > 20 and parts[101] == [min(number, 4) for number in parts[101]]
