"""Runs are sorted by their settings: those that differ in their seed are one, and data stand in columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame

from raysim.comparison.settings import group
from raysim.errors import ConfigError
from raysim.results.result import RunResult
from raysim.storage.origin import Origin, write_origin
from raysim.storage.proof_file import ProofFile


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


def replay(folder: Path, after: int, *changes: str, **options: Any) -> RunResult:
    folder.mkdir()
    write_origin(folder, Origin("run", "ab" * 32, after, "cd" * 32, changes))
    return replace(result("", **options), folder=folder)


def test_a_replay_that_took_rounds_of_other_settings_is_no_run_of_its_own(tmp_path: Path) -> None:
    """It counted as one more seed of them, and as a repetition of which the run itself was left out."""
    prox = {"name": "fedprox", "mu": 0.5}
    changed = [replay(tmp_path / f"r{seed}", 3, "method.mu: 0.0 → 0.5", method=prox, seed=seed) for seed in (0, 1)]
    later = replay(tmp_path / "later", 4, "method.mu: 0.0 → 0.5", method=prox)
    ordinary, before = result("a", method=prox), result("b", method=prox | {"mu": 0.0})
    settings = group([changed[0], ordinary, before, changed[1], later])
    assert [setting.seeds for setting in settings] == [["0", "1"], ["0"], ["0"], ["0"]]
    assert not any(setting.repeated for setting in settings)
    rest = "with method.mu: 0.0 → 0.5"
    assert [setting.label for setting in settings] == [
        f"mu 0.5, replayed from round 4 {rest}",
        "mu 0.5",
        "mu 0.0",
        f"mu 0.5, replayed from round 5 {rest}",
    ]
    assert [setting.label for setting in group([ordinary, changed[0]])] == ["a", f"replayed from round 4 {rest}"]


def test_a_replay_that_changed_nothing_before_or_at_all_is_a_run_of_its_settings(tmp_path: Path) -> None:
    same, whole = replay(tmp_path / "same", 3), replay(tmp_path / "whole", 0, "seed: 0 → 1", seed=1)
    (setting,) = group([result("a"), same, whole])
    assert setting.seeds == ["0", "1"] and [run.folder.name for run in setting.repeated] == ["same"]


def test_what_a_run_decided_equals_what_another_was_given(tmp_path: Path) -> None:
    def decided(name: str, content: Any, kept: str = "auto") -> RunResult:
        (tmp_path / name).mkdir()
        ProofFile(tmp_path / name / "proof.jsonl").append(content)
        return replace(result("", training={"last_batch": kept}), folder=tmp_path / name)

    first = decided("first", {"settings": {"training.last_batch": "keep"}})
    given = result("given", training={"last_batch": "keep"}, seed=1)
    (setting,) = group([first, given])
    assert setting.seeds == ["0", "1"]
    strange = decided("strange", {"settings": {"training.last_batch": "x\n"}})
    old, without = decided("old", {"settings": 3}), result("without", training={"last_batch": "auto"})
    assert [one.label for one in group([given, strange, old, without])] == ["last_batch keep", "last_batch auto"]
    (tmp_path / "old" / "proof.jsonl").write_text("damaged\n")
    assert group([given, old])[1].label == "last_batch auto"
    merged = decided("merged", {"settings": {"training.last_batch": "merge"}})
    assert len(group([first, merged])) == 1  # the same settings, left to both runs


def test_text_of_a_foreign_folder_is_one_line() -> None:
    runs = [result("a"), result("b", method={"name": "x\n% \x1b[31m"})]
    assert group(runs)[1].row.isprintable()
