"""Which cell is computed next, and how many side by side."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raysim.config.run_config import build
from raysim.studies import cells_left, study_file
from raysim.studies.cells_left import CellsLeft, usable_cores, usual_workers
from tests.raysim.studies.test_side_by_side import made


@pytest.mark.parametrize(("limit", "cores"), [("max 100000", 8), ("250000 100000", 3), ("10000 100000", 1), ("", 8)])
def test_a_container_has_no_more_cores_than_its_share_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(cells_left, "QUOTA", tmp_path / "cpu.max")
    if limit:
        (tmp_path / "cpu.max").write_text(f"{limit}\n", encoding="utf-8")
    assert usable_cores() == cores


def test_cells_with_threads_or_parts_of_gpus_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_left, "usable_cores", lambda: 8)
    configs = [build([{"engine.threads": 3}]), build([{"engine.gpus_per_client": 0.25}])]
    assert usual_workers(configs[:1]) == 2 and usual_workers(configs[1:]) == 4 and usual_workers(configs) == 2
    assert usual_workers([build([{"engine.threads": 16}])]) == 1


def test_the_longest_cells_go_first_and_what_was_measured_counts(tmp_path: Path) -> None:
    path = made(tmp_path, 2)
    text = (
        path.read_text().replace("FedProx: {", "FedProx: {schedule.rounds: 20, ").replace("seeds: [0]", "seeds: [0, 1]")
    )
    path.write_text(text, encoding="utf-8")
    cells = list(study_file.read(path).cells())
    left = CellsLeft(cells, longest_first=True)
    first = left.take()
    assert first is not None and first.name == "FedProx / seed 0"
    left.took(first, 1.0)
    assert [round(left.expected(cell), 6) for cell in cells] == [0.1, 1.0, 0.1, 1.0]
    left.took(cells[0], 30.0)
    second = left.take()
    assert second is not None and second.name == "FedAvg / seed 0"
    in_order = CellsLeft(cells, longest_first=False)
    assert in_order.take() is cells[0]


@pytest.mark.parametrize("longest_first", [True, False])
def test_all_rows_have_a_seed_before_one_has_the_next(tmp_path: Path, longest_first: bool) -> None:
    """Also where a row turned out to take longer, and where a seed was there before."""
    path = made(tmp_path, 2)
    path.write_text(path.read_text().replace("seeds: [0]", "seeds: [5, 1, 3]"), encoding="utf-8")
    cells = [cell for cell in study_file.read(path).cells() if (cell.row, cell.seed) != ("FedAvg", 1)]
    left = CellsLeft(cells, longest_first=longest_first)
    taken = []
    while len(left):
        cell = left.take()
        assert cell is not None
        taken.append((cell.seed, cell.row))
        left.took(cell, 9.0 if cell.row == "FedAvg" else 1.0)
    assert sorted(taken, key=lambda one: one[0]) == taken and taken[0] == (1, "FedProx") and len(taken) == 5
