"""A search from the command line: its table for any number of workers and after a kill, and the refusals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from raysim.config.run_config import build
from raysim.errors import ConfigError
from raysim.search import command
from raysim.search.__main__ import main
from raysim.search.space import Axis
from raysim.search.table import page
from raysim.search.trials import carry_out
from raysim.studies import failures
from raysim.studies.study_file import Cell
from tests.long_tests import long
from tests.raysim.search.asked import BASE, in_order, search_in

WORDS = [
    *("--method", "fedprox", "--model", "logistic", "--workload.limit", "100", "--clients", "3", "--rounds", "2"),
    *("--validation_share", "0.2", "--space", "mu=0.001:1:log", "--space", "learning_rate=0.01:0.5:log"),
    *("--trials", "4", "--batch", "2"),
]


def _killed(folder: Path, more: Sequence[str] = (), cells: int = 1) -> None:
    """Begin the search with two workers, and kill it once some cells are there."""
    words = [sys.executable, "-m", "raysim.search", *WORDS, *more, "--output", str(folder), "--workers", "2"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if len([*folder.glob("results/*.csv")]) >= cells or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_one_and_two_workers_and_a_kill_make_one_table(tmp_path: Path) -> None:
    assert main([*WORDS, "--output", str(tmp_path / "one"), "--workers", "1"]) == 0
    _killed(tmp_path / "two")
    assert not (tmp_path / "two" / "best.yaml").exists() or "2 trials left" in (tmp_path / "two/table.md").read_text()
    assert main([*WORDS, "--output", str(tmp_path / "two"), "--workers", "2"]) == 0
    page, best = ((tmp_path / "one" / name).read_text() for name in ("table.md", "best.yaml"))
    assert page == (tmp_path / "two" / "table.md").read_text()
    assert best == (tmp_path / "two" / "best.yaml").read_text()
    assert "Budget: 4 trials × 1 seed × 2 rounds = 8 rounds" in page and page.count("**") == 8
    assert "Chosen by the mean of validation_accuracy over the seeds, on validation data." in page
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "one" / "results").iterdir()}
    assert main([*WORDS, "--output", str(tmp_path / "one")]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "one" / "results").iterdir()}


@long
def test_halving_makes_one_table_with_one_two_and_eight_workers_and_after_kills(tmp_path: Path) -> None:
    more = ["--trials", "16", "--batch", "8", "--rounds", "24", "--halving", "2"]
    for cells in (3, 11):  # on the first rung, and on a later one
        _killed(tmp_path / "8", more, cells)
    for workers in ("1", "2", "8"):
        assert main([*WORDS, *more, "--output", str(tmp_path / workers), "--workers", workers]) == 0
    one, two, eight = ((tmp_path / str(count)) for count in (1, 2, 8))
    for name in ("table.md", "best.yaml"):
        assert (one / name).read_text() == (two / name).read_text() == (eight / name).read_text()
    rows = [{path.name: path.read_bytes() for path in folder.glob("results/*.csv")} for folder in (one, two, eight)]
    assert rows[0] == rows[1] == rows[2] and len(rows[0]) == 2 * (8 + 4 + 2 + 1)
    assert (
        "(8 to round 3, 4 to round 6, 2 to round 12, 1 to round 24) = 120 rounds; m" in (one / "table.md").read_text()
    )


def _budget(folder: Path, *axes: Axis) -> str:
    """The budget under the table of a search over these options."""
    search = replace(search_in(folder, trials=8), axes=axes, base={**BASE, "method.mu": 0.1})
    trials = carry_out(search, in_order(lambda cell: cell.name), lambda: False, lambda trials: None)
    return page(search, trials, "", build([BASE])).split("\n\n")[1].splitlines()[0].partition(";")[0]


def test_the_budget_is_the_sum_of_the_rounds_that_runs_were_given(tmp_path: Path) -> None:
    """Those of the first values of a space were taken for all trials."""
    rounds = Axis("schedule.rounds", choices=(1, 2, 5))
    told = _budget(tmp_path / "rounds", rounds)
    trained = sum(len(path.read_text().splitlines()) - 1 for path in tmp_path.rglob("*.csv"))
    assert told == f"Budget: 8 trials × 2 seeds × 1 to 5 rounds = {trained} rounds"
    adam = Axis("training.optimizer", choices=("sgd", "adam")), Axis("training.momentum", low=0.1, high=0.9)
    told = _budget(tmp_path / "impossible", *adam)  # adam has no momentum
    trained = 3 * sum("failed" not in path.name for path in (tmp_path / "impossible/results").glob("*.csv"))
    assert told.startswith("Budget: 8 trials × 2 seeds × 3 rounds = 48 rounds, of which ") and f"{trained} were" in told


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--measure", "accuracy"], "--measure accuracy: a search may not choose by test data"),
        (["--measure", "best_accuracy"], "a search may not choose by test data"),
        (["--measure", "validated_accuracy"], "a search may not choose by test data"),
        (["--measure", "validated_validation_accuracy"], "a search may not choose by test data"),
        (["--measure", "acuracy"], "no measure 'acuracy'. Did you mean accuracy?"),
        (["--validation_share", "0"], "workload.validation_share: 0, so there is no validation data to choose by"),
        (["--patience", "3"], "runs of a search may not end early by test data"),
        (["--space", "patience=0:3"], "runs of a search may not end early by test data"),
        (
            ["--patience", "3", "--space", "evaluation.measure=validation_loss,loss"],
            "runs of a search may not end early by test data",
        ),
        (["--mu", "0.1"], "--method.mu: it is searched"),
        (["--seed", "3"], "a search has seeds, --seeds 0-2"),
        (["--seeds", "0-2,1"], "--seeds 0-2,1: a seed is there twice"),
        (["--trials", "0"], "--trials 0: not allowed. Allowed: a whole number ≥ 1"),
        (["--sampler-seed=-1"], "--sampler-seed -1: not allowed. Allowed: a whole number from 0 to 4294967295"),
        (["--space", "nothing=1:2"], "Unknown option nothing"),
        (["--config", "mine.yaml"], "only options of runs may stand here"),
        (["--privacy.clip", "1"], "privacy.clip: 1.0 has no effect with privacy.kind none"),  # the default, but typed
        (["--workload", "cifar10", "--path", "/nowhere"], "trial 1 / seed 0: cifar10 is not to be had from /nowhere"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    assert main([*WORDS, *more, "--output", str(tmp_path / "search")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "search").exists()


def test_a_measure_that_the_data_cannot_have_is_refused(tmp_path: Path) -> None:
    words = [*_table(tmp_path), "--task", "regression", "--space", "momentum=0:0.9"]
    with pytest.raises(ConfigError, match="--measure validation_accuracy: the run trial 1 / seed 0 has no column"):
        command.read(words, "")
    assert not (tmp_path / "search").exists()


def _table(folder: Path) -> list[str]:
    """The words of a search on a small table, whose columns are x, A and a."""
    (folder / "table.csv").write_text("x,A,a\n" + "1,0,1\n2,1,0\n" * 50)
    words = ["--method", "fedavg", "--workload", "table", "--path", str(folder / "table.csv"), "--clients", "2"]
    return [*words, "--model", "mlp", "--validation_share", "0.2", "--output", str(folder / "search")]


def test_options_of_the_data_may_be_searched_where_one_value_has_data(tmp_path: Path) -> None:
    """That no client has as many samples as another value asks for is a failed trial."""
    searched = [*WORDS, "--space", "min_samples=5000,5", "--output", str(tmp_path)]
    assert command.read(searched, "").folder.exists()


def test_a_default_may_be_typed_that_a_value_reads_and_stands_in_kept_searches(tmp_path: Path) -> None:
    words = [*WORDS, "--candidates", "2", "--output", str(tmp_path)]
    kept = command.read([*words, "--space", "sampling=fixed,power-of-choice"], "").folder / command.FILE
    request = yaml.safe_load(kept.read_text())
    kept.write_text(yaml.safe_dump({**request, "space": request["space"][:2]}))
    assert command.read(words, "").folder == tmp_path


def test_a_search_whose_trials_all_failed_says_how_they_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cells: Sequence[Cell], *rest: object) -> dict[str, str]:
        for cell in cells:
            cell.path.parent.mkdir(exist_ok=True)
            failures.keep(cell, tmp_path, "no room")
        return {}

    monkeypatch.setattr("raysim.search.__main__.compute", fail)
    assert main([*WORDS, "--output", str(tmp_path / "search")]) == 1
    said = capsys.readouterr().err
    assert f"{tmp_path}/search/results/*.failed.csv; once these files are removed, the same command" in said


def test_a_folder_keeps_one_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.read([*WORDS, "--output", str(tmp_path)], "")
    command.read([*WORDS, "--trials", "8", "--output", str(tmp_path)], "")
    assert main([*WORDS, "--batch", "3", "--output", str(tmp_path)]) == 2
    assert "search.yaml is another search" in capsys.readouterr().err


def test_choices_that_differ_in_case_alone_are_another_search(tmp_path: Path) -> None:
    """The request and the command of the table had all of them in lower case."""
    words = _table(tmp_path)
    request = command.read([*words, "--space", "target=A,B"], "")
    assert "--space workload.target=A,B " in request.words
    with pytest.raises(ConfigError, match="is another search"):
        command.read([*words, "--space", "target=a,b"], "")


def test_a_folder_of_an_earlier_version_is_the_same_search(tmp_path: Path) -> None:
    """Its choices were in lower case, which numbers and true and false are anyway."""
    words = ["--space", "freeze_batchnorm", "--space", "optimizer=sgd,adam", "--space", "margin=1E-3,10"]
    words = ["--method", "fedavg", "--validation_share", "0.2", *words, "--output", str(tmp_path)]
    kept = command.read(words, "").folder / command.FILE
    request = yaml.safe_load(kept.read_text())
    earlier = "training.freeze_batchnorm=false,true", "training.optimizer=sgd,adam", "training.margin=0.001,10.0"
    kept.write_text(yaml.safe_dump({**request, "space": [*earlier]}))
    assert command.read(words, "").search.axes[1].choices == ("sgd", "adam")


def test_without_optuna_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.search.command.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="Install it with pip install optuna"):
        command.read([*WORDS, "--output", str(tmp_path / "search")], "")
