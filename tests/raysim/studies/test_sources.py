"""A user's own code and files that a cell was made with: a change is noticed before cells of two versions are mixed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from raysim.engine.observer import Silent
from raysim.errors import ConfigError
from raysim.studies import cell_run, sources, study_file, whole_study
from raysim.studies.places import cell_table
from raysim.studies.study_file import Cell
from raysim.study import main

METHOD = """
from raysim.methods.fedavg import METHOD


class Mine(METHOD):
    pass
"""
IDLE = f"""{METHOD}
    def aggregate(self, server, updates, context):
        return server
"""
TEXT = """
title: Small
results: results
table: page.md
base: {workload.limit: 200, workload.clients: 3, model.name: logistic, schedule.rounds: 4, engine.checkpoint_every: 1}
rows: {Mine: {ROW}}
seeds: SEEDS
measures: {accuracy: last}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a method of a user's own, which can be imported."""
    (tmp_path / "sourced_method.py").write_text(METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("sourced_method", None)


def written(folder: Path, row: str, seeds: str = "[0]") -> Cell:
    """The first cell of a study in the folder."""
    path = folder / "study.yaml"
    path.write_text(TEXT.replace("ROW", row).replace("SEEDS", seeds), encoding="utf-8")
    return next(study_file.read(path, [folder]).cells())


def edit(folder: Path, text: str) -> None:
    """Write the method's file anew, as a program that starts later finds it."""
    (folder / "sourced_method.py").write_text(text)
    for compiled in folder.glob("__pycache__/sourced_method*"):
        compiled.unlink()
    sys.modules.pop("sourced_method", None)
    importlib.invalidate_caches()


class Rounds(Silent):
    """Counts the rounds that have ended."""

    def __init__(self) -> None:
        self.ended = 0

    def round_finished(self, row: Mapping[str, Any]) -> None:
        self.ended += 1


def ended_after(rounds: int, cell: Cell) -> cell_run.End:
    """The end of an attempt that is stopped after this number of rounds."""
    watch = Rounds()
    return cell_run.run_cell(cell, watch, lambda: watch.ended >= rounds)


def test_a_cell_of_another_source_is_not_mixed_with_new_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = written(folder, "method.name: 'sourced_method:Mine'")
    words = ["study.yaml", "--workers", "1", "--trust", "."]
    assert main(words) == 0
    edit(folder, METHOD + "# another\n")
    written(folder, "method.name: 'sourced_method:Mine'", "[0, 1]")
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "1 finished cell had another content of sourced_method:Mine: " in said
    assert "mine-seed0.csv. Remove these files" in said and ".sources" in said
    assert main([*words, "--table-only"]) == 0
    edit(folder, METHOD)  # taken back
    assert main(words) == 0
    edit(folder, METHOD + "# another\n")
    for path in cell.path.parent.glob("*.sources"):
        path.unlink()
    assert main(words) == 0


def test_cells_of_another_source_that_came_meanwhile_are_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second process may have begun after an edit, when no cell was finished."""
    cell = written(folder, "method.name: 'sourced_method:Mine'", "[0, 1]")

    def computed(cells: list[Cell], *_: object) -> dict[str, str]:
        for number, one in enumerate(cells):
            assert cell_run.run_cell(one, Silent(), lambda: False).kind == "finished"
            if number:
                sources.place(one).write_text(json.dumps({"sourced_method:Mine": "another"}))
        return {}

    monkeypatch.setattr(whole_study, "compute", computed)
    assert main(["study.yaml", "--workers", "1", "--trust", "."]) == 1
    assert "1 finished cell had another content of sourced_method:Mine: " in capsys.readouterr().err
    assert cell.path.exists() and not (folder / "page.md").exists()


def test_an_interrupted_cell_does_not_go_on_with_another_source(folder: Path) -> None:
    cell = written(folder, "method.name: 'sourced_method:Mine'")
    assert ended_after(2, cell).kind == "stopped"
    assert ended_after(99, cell) == cell_run.End("finished")
    cell.path.unlink()
    assert ended_after(2, cell).kind == "stopped"
    edit(folder, IDLE)
    end = ended_after(99, cell)
    assert (end.kind, end.reason) == ("finished", "source of sourced_method:Mine: it was changed after the run")
    sources.check([cell])
    assert cell_table(cell.path)["accuracy"].nunique() == 1  # all rounds are of the new one


def test_an_edit_in_the_midst_of_a_run_counts_for_the_next(folder: Path) -> None:
    cell = written(folder, "method.name: 'sourced_method:Mine'")

    class Edits(Silent):
        def round_finished(self, row: Mapping[str, Any]) -> None:
            edit(folder, METHOD + "# another\n")

    assert cell_run.run_cell(cell, Edits(), lambda: False).kind == "finished"
    with pytest.raises(ConfigError, match="another content of sourced_method:Mine"):
        sources.check([cell])


def test_a_program_that_imported_the_code_before_an_edit_records_what_it_computes_with(folder: Path) -> None:
    cells = [written(folder, "method.name: 'sourced_method:Mine'", f"[{seed}]") for seed in (0, 1)]
    assert ended_after(99, cells[0]).kind == "finished"
    (folder / "sourced_method.py").write_text(IDLE)
    assert ended_after(99, cells[1]).kind == "finished"
    first, second = (sources.place(cell).read_text() for cell in cells)
    assert first == second and cell_table(cells[1].path)["accuracy"].nunique() > 1
    sources.check(cells)
    edit(folder, IDLE)  # a program that starts now
    with pytest.raises(ConfigError, match="2 finished cells had another content"):
        sources.check(cells)


def test_a_trace_that_was_changed_is_noticed(folder: Path) -> None:
    trace = folder / "trace.csv"
    trace.write_text("seconds_per_sample\n" + "0.01\n" * 3)
    row = f"method.name: fedavg, devices.preset: trace, devices.trace: {trace}"
    cell = written(folder, row)
    assert ended_after(99, cell).kind == "finished"
    sources.check([cell])
    trace.write_text("seconds_per_sample\n" + "10\n" * 3)
    with pytest.raises(ConfigError, match=rf"another content of devices.trace {trace}"):
        sources.check([cell])
    cell.path.unlink()

    class Rewrites(Silent):
        def round_finished(self, row: Mapping[str, Any]) -> None:
            trace.write_text("seconds_per_sample\n" + "0.01\n" * 3)

    assert cell_run.run_cell(cell, Rewrites(), lambda: False).kind == "finished"
    with pytest.raises(ConfigError, match=rf"another content of devices.trace {trace}"):
        sources.check([cell])


def test_a_cell_of_raysims_own_methods_has_no_such_file(folder: Path) -> None:
    cell = written(folder, "method.name: fedavg")
    sources.place(cell).parent.mkdir()
    sources.place(cell).write_text(json.dumps({"sourced_method:Mine": "0" * 64}))  # of a row of the same name before
    assert ended_after(99, cell).kind == "finished"
    assert not sources.place(cell).exists()
    sources.check([cell])


@pytest.mark.parametrize("content", ["[]", "no JSON", '{"sourced_method:Mine": 3}'])
def test_a_file_that_is_none_is_told(folder: Path, content: str) -> None:
    cell = written(folder, "method.name: 'sourced_method:Mine'")
    assert ended_after(99, cell).kind == "finished"
    sources.place(cell).write_text(content)
    with pytest.raises(ConfigError, match=r"mine-seed0\.sources: .*Remove it"):
        sources.check([cell])


def test_a_failed_cell_has_the_source_too(folder: Path) -> None:
    cell = written(folder, "method.name: 'sourced_method:Mine', model.name: mlp, training.learning_rate: 1.0e+30")
    assert ended_after(99, cell).kind == "failed"
    sources.check([cell])
    assert sources.place(cell).exists()
    edit(folder, METHOD + "# mended\n")
    sources.check([cell])  # it is computed anew, and mixes nothing
