"""Cells as Ray tasks: the bytes of in-process cells, also where a process of Ray's is killed; stopping."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from raysim import study
from raysim.actors.long_tasks import LongTasks
from raysim.errors import PlacementError
from raysim.storage.claims import claim_of
from raysim.studies import cells_on_ray, study_file
from raysim.studies.board import Board
from raysim.studies.cell_run import folder_of
from raysim.studies.cells_left import CellsLeft
from raysim.studies.study_file import Study
from tests.raysim.studies.test_side_by_side import LONG, goes_on, made, rows


def computed(study: Study, asked: Callable[[], bool]) -> dict[str, str]:
    """The study's cells on Ray; those that failed."""
    cells = list(study.cells())
    left = CellsLeft(cells, longest_first=True)
    with LongTasks(cells[0].config()) as tasks, Board(left, 2) as board:
        on_ray = cells_on_ray.CellsOnRay(left, None, board, tasks, study.results)
        return on_ray.run(asked, lambda: None)


class Cluster(LongTasks):
    """A cluster of one node without Ray."""

    here = 2.0

    def __enter__(self) -> LongTasks:
        return self

    def nodes(self) -> list[dict[str, float]]:
        return [{"CPU": self.here}]


@pytest.mark.parametrize(
    ("words", "takes"),
    [
        ("engine.threads: 4", "4 CPU"),
        ("engine.gpus_per_client: 0.5, engine.threads: 2", "2 CPU (engine.threads) and 0.5 GPU"),
    ],
)
def test_a_cell_that_no_node_has_room_for_is_an_error_and_no_wait(
    tmp_path: Path, words: str, takes: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("raysim.actors.long_tasks.LongTasks", Cluster)
    path = made(tmp_path, 2)
    path.write_text(path.read_text(encoding="utf-8").replace("base: {", f"base: {{{words}, "), encoding="utf-8")
    assert study.main([str(path), "--cells-on", "ray"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"FedAvg / seed 0: it takes {takes}" in said and "Lower engine.threads" in said
    assert not (tmp_path / "results").exists()


def test_cells_of_a_cluster_that_has_lost_its_nodes_are_not_waited_for(tmp_path: Path) -> None:
    cells = list(study_file.read(made(tmp_path, 2)).cells())
    left = CellsLeft(cells, longest_first=True)
    tasks = Cluster(cells[0].config())
    with Board(left, 2, interactive=False) as board:
        tasks.here = 0.0
        on_ray = cells_on_ray.CellsOnRay(left, None, board, tasks, tmp_path / "results")
        with pytest.raises(PlacementError, match="none has more than 0 CPU"):
            on_ray.run(lambda: False, lambda: None)
    assert not [*(tmp_path / "results").iterdir()]


def rounds_of(folder: Path) -> int:
    table = folder / "rounds.csv"
    return table.read_text(encoding="utf-8").count("\n") if table.exists() else 0


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
def test_cells_on_ray_leave_the_same_bytes_after_a_kill_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main([str(made(tmp_path / "whole", LONG)), "--workers", "1"]) == 0
    found = study_file.read(made(tmp_path / "ray", LONG))
    cell, killed = next(found.cells()), list[int]()

    def kill_once() -> bool:
        if not killed and rounds_of(folder_of(cell)) > 6:
            killed.append(json.loads(claim_of(cell.path).read_text(encoding="utf-8"))["process"])
            os.kill(killed[0], signal.SIGTERM)  # as Ray's node managers and batch systems do
        return False

    assert computed(found, kill_once) == {} and killed
    assert rows(tmp_path / "ray") == rows(tmp_path / "whole")
    assert f"{cell.name}: finished, accuracy 0." in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
def test_cells_on_ray_stop_after_their_present_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = study_file.read(made(tmp_path, LONG))
    cell = next(found.cells())
    assert computed(found, lambda: rounds_of(folder_of(cell)) > 6) == {}
    assert f"{cell.name}: stopped, its last whole round is saved" in capsys.readouterr().out
    assert goes_on(cell, to_its_end=False) > 6
    assert not [*found.results.glob(".study-*")]


def test_a_node_with_another_file_system_says_so(tmp_path: Path) -> None:
    cell = next(study_file.read(made(tmp_path, 2)).cells())
    end = cells_on_ray.work(cell, 0, str(tmp_path / "results" / ".study-of-another"))
    assert end.kind == "failed" and "put the study where all nodes see it" in end.reason
    assert not cell.path.exists()
