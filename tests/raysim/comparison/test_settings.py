"""Runs are sorted by their settings: those that differ in their seed are one, and data stand in columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame

from raysim.comparison.settings import group
from raysim.errors import ConfigError
from raysim.results.result import RunResult


def result(name: str, rounds: int = 1, **options: Any) -> RunResult:
    config: dict[str, Any] = {"method": {"name": "fedavg"}, "workload": {"name": "digits"}, "seed": 0} | options
    return RunResult(Path(name), config, DataFrame({"round": range(rounds)}), DataFrame(), {})


def test_seeds_and_places_are_no_settings() -> None:
    runs = [result("a", seed=3, output="x"), result("b", seed=1), result("c", seed=3, rounds=2)]
    (setting,) = group(runs)
    assert setting.seeds == ["1", "3"] and [run.folder.name for run in setting.runs] == ["b", "c"]
    assert [run.folder.name for run in setting.repeated] == ["a"]
    assert (setting.row, setting.column, setting.label) == ("fedavg", "", "a") and not setting.is_local


def test_a_run_from_before_an_option_was_there_has_its_default() -> None:
    now = [result(value, training={"batchnorm_statistics": value}) for value in ("averaged", "local")]
    before, other = group([result("before"), *now])
    assert [run.folder.name for run in (*before.runs, *before.repeated)] == ["before", "averaged"]
    assert other.label == "batchnorm_statistics local"


def test_another_method_brings_its_name_and_not_its_options() -> None:
    prox = [{"name": "fedprox", "mu": mu} for mu in (0.1, 1.0)]
    settings = group([result("a"), *(result(f"b{one['mu']}", method=one) for one in prox)])
    assert [setting.row for setting in settings] == ["fedavg", "fedprox, mu 0.1", "fedprox, mu 1.0"]
    assert [setting.label for setting in settings] == [setting.row for setting in settings]
    assert settings[0].differing == {"method.name": "fedavg", "method.mu": ""}
    assert [one.row for one in group([result("a"), result("b", method=prox[0])])] == ["fedavg", "fedprox"]


def test_data_are_columns() -> None:
    runs = [
        result(f"{name}{alpha}", method={"name": name}, workload={"name": "digits", "alpha": alpha})
        for name in ("fedavg", "local")
        for alpha in (0.1, 1.0)
    ]
    assert [(one.row, one.column) for one in group(runs)] == [
        ("fedavg", "alpha 0.1"),
        ("fedavg", "alpha 1.0"),
        ("local", "alpha 0.1"),
        ("local", "alpha 1.0"),
    ]
    assert [one.is_local for one in group(runs)] == [False, False, True, True]


def test_settings_that_no_option_tells_apart_have_their_folders_names() -> None:
    runs = [result("a"), result("b", method={"name": "fedavg", "own": 1})]
    assert [(one.row, one.label) for one in group(runs)] == [("fedavg, a", "a"), ("fedavg, b", "b")]


def test_folders_of_one_name_have_as_much_of_their_paths_as_tells_them_apart() -> None:
    """They were one row, in which the second's values took the place of the first's."""
    own = {"name": "fedavg", "own": 1}
    runs = [result("x/one/last"), result("y/one/last", method=own), result("z/last", method=own | {"other": 2})]
    assert [one.row for one in group(runs)] == ["fedavg, x/one/last", "fedavg, y/one/last", "fedavg, z/last"]
    with pytest.raises(ConfigError, match="one/last is there twice, with different settings"):
        group([result("one/last"), result("one/last", method=own)])


def test_text_of_a_foreign_folder_is_one_line() -> None:
    runs = [result("a"), result("b", method={"name": "x\n% \x1b[31m"})]
    assert group(runs)[1].row.isprintable()
