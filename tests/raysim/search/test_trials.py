"""Trials are the same whatever the order in which their cells end, and after kills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from raysim.search.trials import Search, Trial, best_of, carry_out
from raysim.studies.study_file import Cell
from tests.raysim.search.asked import in_order, make, search_in


def _carried_out(search: Search, compute: object = None) -> list[tuple[object, ...]]:
    made = carry_out(search, compute or in_order(lambda cell: cell.name), lambda: False, lambda trials: None)  # type: ignore[arg-type]
    return [(trial.number, *trial.values.values(), trial.measured) for trial in made]


def test_the_order_in_which_cells_end_changes_nothing(tmp_path: Path) -> None:
    found = _carried_out(search_in(tmp_path / "a"))
    assert len(found) == 10 and len({row[1] for row in found}) == 10
    assert found == _carried_out(search_in(tmp_path / "b"), in_order(lambda cell: (-cell.seed, hash(cell.name))))
    assert found != _carried_out(replace(search_in(tmp_path / "c"), sampler_seed=1))


def test_a_kill_changes_nothing(tmp_path: Path) -> None:
    whole = _carried_out(search_in(tmp_path / "a"))
    made: list[Cell] = []

    def until_killed(cells: Sequence[Cell]) -> None:
        for cell in reversed(cells):
            if len(made) % 5 == 4:
                made.append(cell)
                raise KeyboardInterrupt
            make(cell)
            made.append(cell)

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            _carried_out(search_in(tmp_path / "b"), until_killed)
    assert whole == _carried_out(search_in(tmp_path / "b"))


def test_more_trials_go_on_from_those_that_are_there(tmp_path: Path) -> None:
    first = _carried_out(search_in(tmp_path, trials=6))
    asked: list[Cell] = []

    def compute(cells: Sequence[Cell]) -> None:
        asked.extend(cells)
        in_order(lambda cell: cell.name)(cells)

    assert _carried_out(search_in(tmp_path, trials=10), compute)[:6] == first
    assert len(asked) == 8


def test_a_stop_leaves_whole_batches(tmp_path: Path) -> None:
    seen: list[int] = []
    made = carry_out(
        search_in(tmp_path),
        in_order(lambda cell: cell.name),
        lambda: len(seen) == 2,
        lambda trials: seen.append(len(trials)),
    )
    assert (len(made), seen) == (8, [4, 8])


@pytest.mark.parametrize(("measure", "best"), [("validation_accuracy", 2), ("validation_loss", 1)])
def test_the_best_is_the_largest_accuracy_or_the_smallest_loss(tmp_path: Path, measure: str, best: int) -> None:
    search = search_in(tmp_path, measure)
    trials = [
        Trial(number, {}, (), measured) for number, measured in ((1, (0.1, 0.2)), (2, (0.9,)), (3, None), (4, (0.9,)))
    ]
    found = best_of(trials, search.measure)
    assert found is not None and found.number == best
    assert best_of(trials[2:3], search.measure) is None
