"""A table of runs that grows cell by cell."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pytest

from raysim import study
from raysim.config.run_config import RunConfig, to_yaml
from raysim.driver.outcome import Outcome
from raysim.engine.observer import Silent
from raysim.errors import ConfigError, RaysimError
from raysim.storage.claims import claimed
from raysim.studies import cell_run, failures, side_by_side, study_file, tables
from raysim.studies.cell_run import End
from raysim.studies.checks import check_cell, check_measures
from raysim.workloads.errors import WorkloadError
from tests.raysim.small_study import TEXT, keep

HERE = ("--workers", "1")
"""All cells in this process, where a test may replace what computes them."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_finished_cells_are_skipped_and_the_table_is_their_mean(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def fake(cell: study_file.Cell, *rest: object) -> End:
        made.append(f"{cell.column}/{cell.row}/{cell.seed}")
        # Last 0.5 + seed/10, best 0.9; a round without evaluation in between.
        keep(cell, accuracy=[0.9, float("nan"), 0.5 + cell.seed / 10])
        return End("finished")

    monkeypatch.setattr(cell_run, "run_cell", fake)
    assert study.main([str(path), *HERE]) == 0
    places = (("MLP", 0), ("MLP", 1), ("Logistic", 5))
    assert made == [f"{column}/{row}/{seed}" for column, seed in places for row in ("FedAvg", "Strong prox")]
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    # Seeds 0 and 1: 50 and 60 %, mean 55, sample standard deviation 7.07; seed 5 alone: 100 %, its best too.
    assert "| FedAvg | 55.00 ± 7.07 (2) | 90.00 ± 0.00 (2) | 100.00 (1) | 100.00 (1) |" in page
    made.clear()
    assert study.main([str(path), *HERE]) == 0
    assert made == []
    assert "6 of 6 cells are there" in capsys.readouterr().out


def test_a_cell_is_a_real_run(path: Path) -> None:
    cell = next(study_file.read(path).cells())
    assert cell_run.run_cell(cell, Silent(), lambda: False) == End("finished")
    frame = pd.read_csv(cell.path)
    assert frame["round"].tolist() == [1, 2]
    assert frame["accuracy"].between(0, 1).all()
    assert not [column for column in frame.columns if column.startswith("seconds")]
    assert sorted(entry.name for entry in cell.path.parent.iterdir()) == ["fedavg-seed0.csv", "fedavg-seed0.yaml"]


def test_a_cell_made_with_other_settings_is_not_mixed_in(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell_run.run_cell(next(study_file.read(path).cells()), Silent(), lambda: False)
    path.write_text(TEXT.replace("schedule.rounds: 2", "schedule.rounds: 3"), encoding="utf-8")
    assert study.main([str(path), "--table-only"]) == 2
    message = capsys.readouterr().err
    assert "fedavg-seed0.csv was made with other settings" in message
    assert "schedule.rounds: 2 → 3" in message


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


def test_a_row_may_have_settings_of_one_column(path: Path) -> None:
    text = TEXT.replace(
        "Strong prox: {method.name: fedprox, method.mu: 1.0}",
        "Strong prox: {method.name: fedprox, in: {MLP: {method.mu: 2.0}}}",
    )
    path.write_text(text, encoding="utf-8")
    found = {(cell.column, cell.row): cell.config().method for cell in study_file.read(path).cells()}
    assert found["MLP", "Strong prox"].mu == 2.0 and found["Logistic", "Strong prox"].mu == 0.01
    path.write_text(text.replace("in: {MLP", "in: {CNN"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"in: no column 'CNN'\. There are MLP, Logistic"):
        study_file.read(path)


def test_a_row_may_show_another_measure_in_the_place_of_one(path: Path) -> None:
    """Clients' accuracy after fine-tuning, in the column of methods whose clients have models of their own."""
    tuned = "shows: {accuracy: tuned_client_accuracy_mean}, evaluation.fine_tune: 2"
    path.write_text(TEXT.replace("{method.name: fedavg}", f"{{method.name: fedavg, {tuned}}}"), encoding="utf-8")
    for cell in study_file.read(path).cells():
        keep(cell, accuracy=[0.1, 0.2, 0.3], tuned_client_accuracy_mean=[0.4, 0.5, 0.6])
        assert cell.config().evaluation.fine_tune == (2 if cell.row == "FedAvg" else 0)
    tables.write_table(study_file.read(path))
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 60.00 ± 0.00 (2) | 30.00 ± 0.00 (2) |" in page  # last round tuned, best round as it is
    assert "| Strong prox | 30.00 ± 0.00 (2) | 30.00 ± 0.00 (2) |" in page


def test_a_cell_that_fails_does_not_cost_the_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def fake(cell: study_file.Cell, *rest: object) -> End:
        tried.append(cell.row)
        if cell.row == "FedAvg":
            return End("failed", "diverged")
        keep(cell, accuracy=[0.5])
        return End("finished")

    monkeypatch.setattr(cell_run, "run_cell", fake)
    assert study.main([str(path), *HERE]) == 1
    assert tried == ["FedAvg", "Strong prox"] * 3
    assert "failed cells" in capsys.readouterr().err
    assert "| Strong prox | 50.00 ± 0.00 (2)" in (path.parent / "page.md").read_text(encoding="utf-8")


def test_every_measure_has_its_unit(path: Path) -> None:
    """A loss of 0.7286 was printed as 72.86 and bytes as 1924000000.00, both in percent."""
    text = TEXT.replace(
        "{accuracy: last, best_accuracy: best}",
        "{accuracy: last, best_loss: loss, bytes_up: sent, system_loss: {title: system loss, unit: plain}}",
    )
    path.write_text(text, encoding="utf-8")
    for cell in study_file.read(path).cells():
        keep(cell, accuracy=[0.1, 0.2, 0.3], loss=[2.0, 0.7286, 0.9], bytes_up=19_240_000, system_loss=2.5)
    tables.write_table(study_file.read(path))
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert "|  | MLP, last (%) | MLP, loss | MLP, sent (MB) | MLP, system loss | Logistic, last (%) |" in page
    row = "| FedAvg | 30.00 ± 0.00 (2) | 0.7286 ± 0.0000 (2) | 19.24 (2) | 2.5000 ± 0.0000 (2) | 30.00 (1) |"
    assert row in page


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
        ("seeds: [0, 1]", "seed: [0, 1]", "seeds"),
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
        ("FedAvg: {method.name: fedavg}", "FedAvg: {method: 'no.such:Method'}", "names code of its own"),
        ("method.mu: 1.0", "shows: {acuracy: auc}", "rows: Strong prox: shows: no measure 'acuracy'. Did you mean"),
        ("method.mu: 1.0", "shows: {accuracy: aucc}", "rows: Strong prox: shows: accuracy: no measure 'aucc'"),
        ("method.mu: 1.0", "shows: {accuracy: loss}", "accuracy: loss is in plain, and the column in percent"),
    ],
)
def test_a_mistake_in_a_study_is_one_sentence(
    path: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first run."""
    monkeypatch.setattr(cell_run, "run_cell", lambda *rest: pytest.fail("ran a cell"))
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    assert study.main([str(path), *HERE]) == 2
    said = capsys.readouterr().err
    assert str(path) in said and message in said and "Traceback" not in said


def test_a_study_that_is_not_there_or_no_text_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name, message in (("absent.yaml", "there is no such file"), ("binary.yaml", "cannot be read")):
        assert study.main([str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err


def test_a_measure_that_no_cell_has_is_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(TEXT.replace("{accuracy: last,", "{auc: last,"), encoding="utf-8")
    keep(next(study_file.read(path).cells()), accuracy=[0.5])
    assert study.main([str(path), "--table-only"]) == 0
    assert "no finished cell has a value of auc" in capsys.readouterr().err


def test_what_an_earlier_version_kept_is_compared_as_far_as_its_options_are_there(path: Path) -> None:
    cell = next(study_file.read(path).cells())
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


@pytest.mark.parametrize("second", [tables.BEGIN, "<!-- table small: written by raysim.study -->"])
def test_only_the_table_of_the_study_is_replaced(second: str, path: Path) -> None:
    page, first = path.parent / "page.md", "<!-- table other: written by raysim.study -->"
    page.write_text(f"a\n{first}\nold\n{tables.END}\nb\n{second}\nold\n{tables.END}\nc\n", encoding="utf-8")
    tables.write_table(study_file.read(path))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"a\n{first}\nold\n{tables.END}\nb\n{second}\n| % |") and text.endswith("c\n")


def test_a_cell_that_fails_leaves_a_row_with_round_and_reason_until_it_succeeds(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two rounds were written when the third broke; the table counts it and says why."""

    def broken(config: RunConfig, folder: Path, *rest: object, **more: object) -> Outcome:
        (folder / "rounds.csv").write_text("round,accuracy\n1,0.1\n2,0.2\n", encoding="utf-8")
        return Outcome("failed", "round 3, client 1: the update is not finite | in head.weight\nTraceback: 7")

    first, *others = study_file.read(path).cells()
    for cell in others:
        keep(cell, accuracy=[0.5])
    with monkeypatch.context() as patch:
        patch.setattr("raysim.running.simulation.execute", broken)
        assert study.main([str(path), *HERE]) == 1
    failure = first.path.with_suffix(".failed.csv")
    assert not first.path.exists() and first.path.with_suffix(".yaml").exists()
    reason = "round 3, client 1: the update is not finite | in head.weight"
    assert pd.read_csv(failure).to_dict("records") == [{"failed": 1, "round": 3, "reason": reason}]
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 50.00 (1, 1 failed) | 50.00 (1, 1 failed) | 50.00 (1) |" in page
    shown = reason.replace("|", "\\|")
    assert f"| failed | seed | round | reason |\n|---|---|---|---|\n| MLP / FedAvg | 0 | 3 | {shown} |\n" in page
    capsys.readouterr()
    path.write_text(TEXT.replace("schedule.rounds: 2", "schedule.rounds: 1"), encoding="utf-8")
    assert study.main([str(path), "--table-only"]) == 2
    assert f"{failure} was made with other settings" in capsys.readouterr().err
    path.write_text(TEXT, encoding="utf-8")
    assert study.main([str(path), *HERE]) == 0
    assert "5 of 6 cells are there, 1 failed" in capsys.readouterr().out
    assert first.path.exists() and not failure.exists()
    assert "failed" not in (path.parent / "page.md").read_text(encoding="utf-8")


def test_a_cell_of_which_nothing_was_computed_failed_in_its_first_round(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(config: RunConfig, *rest: object) -> Path:
        raise WorkloadError("no such file")

    monkeypatch.setattr("raysim.running.open_run.prepare", refused)
    assert study.main([str(path), *HERE]) == 1
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | (0, 2 failed) |" in page and "| Logistic / Strong prox | 5 | 1 | no such file |" in page


def test_a_cell_of_another_process_is_left_to_it_and_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def fake(cell: study_file.Cell, *rest: object) -> End:
        made.append(cell.name)
        keep(cell, accuracy=[0.5])
        return End("finished")

    monkeypatch.setattr(cell_run, "run_cell", fake)
    monkeypatch.setattr(side_by_side, "SECONDS", 0.01)
    first, second, *others = study_file.read(path).cells()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(study.main([str(path), *HERE])))
    with claimed(first.path), claimed(second.path):
        thread.start()
        deadline = time.monotonic() + 60
        while len(made) < len(others) and time.monotonic() < deadline:
            time.sleep(0.05)
        keep(first, accuracy=[0.25])
        failures.keep(second, path.parent, RaysimError("diverged"))
    thread.join(60)
    assert made == [cell.name for cell in others] and codes == [1]  # its failure is not tried again, and told
    said = capsys.readouterr()
    assert f"{second.name}: it failed in another process" in said.err
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 37.50 ± 17.68 (2)" in page  # 25 and 50 %


def test_it_says_whom_it_waits_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *others = study_file.read(path).cells()
    for cell in others:
        keep(cell, accuracy=[0.5])

    def made_by_the_other(seconds: float) -> None:
        for cell in (first, second):
            keep(cell, accuracy=[0.25])
        release.close()

    monkeypatch.setattr("raysim.studies.side_by_side.time.sleep", made_by_the_other)
    monkeypatch.setattr(cell_run, "run_cell", lambda *rest: pytest.fail("computed again"))
    with ExitStack() as release:
        release.enter_context(claimed(first.path))
        release.enter_context(claimed(second.path))
        assert study.main([str(path), *HERE]) == 0
    assert f"waits for {first.name} and 1 more, at which process {os.getpid()} on " in capsys.readouterr().out


@pytest.mark.slow
def test_two_processes_share_a_study(path: Path) -> None:
    """Each cell is computed once, both end well, and the table has all of them."""
    command = [sys.executable, "-m", "raysim.study", str(path), *HERE]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    names = [cell.name for cell in study_file.read(path).cells()]
    begun = [line for out, _ in said for line in out.splitlines() if line in names]
    assert sorted(begun) == sorted(names)
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert page.count("(2)") == 4 and page.count("(1)") == 4
    assert not [file for file in path.parent.rglob("*") if ".claim" in file.name or ".partial" in file.name]
    assert study.main([str(path), "--table-only"]) == 0
    assert (path.parent / "page.md").read_text(encoding="utf-8") == page


def test_a_table_says_what_its_epsilon_is_about(path: Path) -> None:
    more = "measures: {epsilon: {title: ε, unit: plain}, accuracy: last"
    path.write_text(TEXT.replace("measures: {accuracy: last", more), encoding="utf-8")
    words = "sampling: poisson, one client added or removed", "sampling: fixed, one client replaced"
    for cell in study_file.read(path).cells():
        keep(cell, accuracy=[0.5], epsilon=1.2, neighbors=words[cell.row == "FedAvg"])
    tables.write_table(study_file.read(path))
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert f"ε: {words[1]} (FedAvg); {words[0]} (Strong prox).\n\n| " in page
    for cell in study_file.read(path).cells():
        keep(cell, accuracy=[0.5], epsilon=1.2, neighbors=words[0])
    tables.write_table(study_file.read(path))
    assert f"ε: {words[0]}.\n\n| " in (path.parent / "page.md").read_text(encoding="utf-8")


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
    path: Path,
    measure: str,
    row: str,
    refused: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was said after the last cell."""
    made: list[str] = []

    def fake(cell: study_file.Cell, *rest: object) -> End:
        made.append(cell.name)
        keep(cell, accuracy=[0.5])
        return End("finished")

    monkeypatch.setattr(cell_run, "run_cell", fake)
    text = TEXT.replace("{accuracy: last", f"{{{measure}, accuracy: last")
    path.write_text(text.replace("rows:\n", f"rows:\n  More: {{{row}}}\n" if row else "rows:\n"), encoding="utf-8")
    assert study.main([str(path), *HERE]) == (2 if refused else 0)
    said = capsys.readouterr().err
    name = measure.partition(":")[0]
    assert (f"measures: {name}: no cell is sure to have the column {name}" in said) == refused == (not made)


def test_every_study_of_the_tree_can_have_its_measures() -> None:
    for file in sorted((Path(__file__).parents[2] / "docs" / "studies").glob("*.yaml")):
        check_measures(study_file.read(file))
