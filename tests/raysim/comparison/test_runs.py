"""Runs without a study file have the tables of a study of them: the same rows, pairs, tests, gains and costs."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import raysim
from raysim import study
from raysim.comparison import csv_files, latex, markdown, runs
from raysim.comparison.runs import Comparison
from raysim.errors import ConfigError
from raysim.results.result import RunResult
from raysim.studies import study_file
from raysim.studies.tables import page_of

MEASURES = ("accuracy", "local_gain", "rounds_to_0.2", "bytes_to_0.2")
OPTIONS: dict[str, Any] = {
    "model": "logistic",
    "rounds": 2,
    "workload.limit": 120,
    "workload.clients": 3,
    "evaluation.each_client": True,
    "engine.backend": "inline",
    "pictures": False,
}


@dataclass(frozen=True)
class Both:
    """A study of two methods with two seeds, and the same runs by themselves."""

    study: Path
    runs: list[RunResult]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("both")
    words = [word for name in MEASURES for word in ("--measure", name)]
    words += ["--grid", "method=fedavg,local", "--seeds", "0,1", "--output", str(folder / "study"), "--workers", "1"]
    for name, value in OPTIONS.items():
        words += [f"--{name}", str(value).lower()]
    assert study.main(words) == 0
    runs = [
        raysim.run({**OPTIONS, "method": method, "seed": seed, "output": str(folder / f"{method}-{seed}")})
        for method, seed in itertools.product(("fedavg", "local"), (0, 1))
    ]
    return Both(folder / "study" / "study.yaml", runs)


def test_the_tables_are_those_of_a_study(both: Both) -> None:
    expected = page_of(study_file.read(both.study))
    found = raysim.compare(both.runs, MEASURES)
    assert [markdown.table(own) for own in found.page.tables] == [markdown.table(own) for own in expected.tables]
    assert [own.name for own in found.page.tables] == ["", "differences", "tests"]
    assert found.page.before == expected.before and len(expected.before) == 2
    assert found.page.origin == expected.origin[1:]
    assert [run["proof"] for run in found.page.runs] == [run["proof"] for run in expected.runs]
    folders = raysim.compare([run.folder for run in reversed(both.runs)], MEASURES, against="fedavg")
    assert folders.outcomes.values == found.outcomes.values and folders.outcomes.rows == ("local", "fedavg")


def test_a_mean_over_clients_and_a_common_test_set_are_told_apart(both: Both) -> None:
    found = raysim.compare(both.runs, ["accuracy"])
    said = (
        "The accuracy of local is the mean over clients on their own test sets, that of the others is on a common one"
    )
    assert [note.partition(": they do not compare")[0] for note in found.page.before] == [said]
    assert raysim.compare(both.runs, ["client_accuracy_mean"]).page.before == ()
    assert raysim.compare(both.runs[2:], ["accuracy"]).page.before == ()


def test_a_run_that_has_not_ended_is_named(both: Both, tmp_path: Path) -> None:
    """It has less than its budget, and was compared as one that has all of it."""
    cut = Path(shutil.copytree(both.runs[1].folder, tmp_path / "cut"))
    (cut / "summary.json").unlink()
    found = raysim.compare([both.runs[0], cut, *both.runs[2:]], ["client_accuracy_mean"])
    assert found.page.before == ("Not ended (no summary.json), and compared by the rounds that they have: cut.",)


def test_they_are_written_as_a_study_writes_them(both: Both, tmp_path: Path) -> None:
    found = raysim.compare(both.runs)
    assert [path.name for path in found.write(tmp_path / "a.csv")] == [
        "a.csv",
        "a-differences.csv",
        "a-tests.csv",
        "a-runs.csv",
    ]
    assert (tmp_path / "a.csv").read_text() == csv_files.files(found.page)[""]
    (text,) = found.write(str(tmp_path / "a.md"))
    assert text.read_text() == f"# Comparison of 4 runs of 2 settings\n\n{found}\n"
    found.write(tmp_path / "a.tex")
    assert (tmp_path / "a.tex").read_text() == latex.page(found.page, "comparison") == found.latex
    with pytest.raises(ConfigError, match=r"a\.html: not allowed\. Allowed: a name that ends in \.md, \.tex or \.csv"):
        found.write(tmp_path / "a.html")


def test_runs_on_other_data_are_a_column_and_no_pairs(both: Both, tmp_path: Path) -> None:
    options = {**OPTIONS, "method": "fedavg", "seed": 0, "workload.limit": 150, "output": str(tmp_path / "other")}
    found: Comparison = raysim.compare([*both.runs, raysim.run(options)])
    assert found.outcomes.columns == ("limit 120", "limit 150") and found.outcomes.rows == ("fedavg", "local")
    (differences,) = [own for own in found.page.tables if own.name == "differences"]
    assert [head.group for head in differences.heads] == ["limit 120"]
    gains = raysim.compare([*both.runs, options["output"]], ["local_gain"]).outcomes.values
    assert [*gains] == [("fedavg", "limit 120", "local_gain"), ("local", "limit 120", "local_gain")]


def test_runs_without_a_seed_pair_with_none() -> None:
    """Not with one of another setting either."""
    unknown, known = SimpleNamespace(config={}), SimpleNamespace(config={"seed": 3})
    others = itertools.count(-1, -1)
    assert [runs._number(run, others) for run in (unknown, known, unknown)] == [-1, 3, -2]  # type: ignore[arg-type]


def test_what_cannot_be_compared_is_refused(both: Both) -> None:
    with pytest.raises(ConfigError, match="there is no run to compare"):
        raysim.compare([])
    with pytest.raises(ConfigError, match=r"no run has a value of auc: no run measured auc\. Leave it out"):
        raysim.compare(both.runs, ["auc"])
    with pytest.raises(ConfigError, match=r"no row 'fedvg'\. Did you mean fedavg\?"):
        raysim.compare(both.runs, against="fedvg")
