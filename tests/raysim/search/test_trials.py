"""Trials are the same whatever the order in which their cells end, and after kills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from raysim.errors import ConfigError, RaysimError
from raysim.search.halving import Bracket
from raysim.search.space import Axis
from raysim.search.trials import Search, Trial, best_of, carry_out
from raysim.studies.study_file import Cell
from tests.raysim.search.asked import BASE, by_workers, in_order, make, search_in

HALVING = Bracket(2, (1, 3, 6))


def _carried_out(search: Search, compute: object = None) -> list[tuple[object, ...]]:
    made = carry_out(search, compute or in_order(lambda cell: cell.name), lambda: False, lambda trials: None)  # type: ignore[arg-type]
    return [(trial.number, *trial.values.values(), trial.measured, trial.rungs, trial.pruned) for trial in made]


def test_values_that_no_run_can_have_together_are_a_failed_trial(tmp_path: Path) -> None:
    axes = (Axis("training.optimizer", choices=("sgd", "adam")), Axis("training.momentum", low=0.1, high=0.9))
    search = replace(search_in(tmp_path, trials=8), axes=axes, base={**BASE, "method.mu": 0.1})
    made = carry_out(search, in_order(lambda cell: cell.name), lambda: False, lambda trials: None)
    adam = [trial.values["training.optimizer"] == "adam" for trial in made]
    assert len(made) == 8 and 0 < sum(adam) < 8
    assert [trial.value is None for trial in made] == adam  # it has no momentum
    failed = next((tmp_path / "results").glob("*.failed.csv")).read_text()
    assert "has no effect with training.optimizer adam" in failed


@pytest.mark.parametrize("bracket", [None, HALVING])
def test_one_two_and_eight_workers_make_the_same_trials(tmp_path: Path, bracket: Bracket | None) -> None:
    one, two, eight = (
        _carried_out(search_in(tmp_path / str(count), trials=12, bracket=bracket), by_workers(count))
        for count in (1, 2, 8)
    )
    assert one == two == eight and len(one) == 12


def test_the_better_half_of_a_bracket_goes_on_and_folders_go_with_it(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def compute(cells: Sequence[Cell]) -> dict[str, str]:
        asked.append([cell.name for cell in cells])
        failed = in_order(lambda cell: cell.name)(cells)
        assert {path.name for path in (tmp_path / "results").glob(".*.run")} == {
            cell.folder.name for cell in cells if cell.folder
        }
        return failed

    search = search_in(tmp_path, trials=8, bracket=HALVING)
    made = carry_out(search, compute, lambda: False, lambda trials: None)
    assert [len(cells) for cells in asked] == [8, 4, 2, 8, 4, 2] and not [*tmp_path.rglob(".*.run")]
    for bracket in (made[:4], made[4:]):
        for place, rung in enumerate(HALVING.rungs[:-1]):
            there = [trial for trial in bracket if len(trial.rungs) > place]
            on = [trial for trial in there if len(trial.rungs) > place + 1]
            values = {trial.number: trial.rungs[place][1] for trial in there}
            assert len(on) == len(there) // 2 + (len(there) == 3) and {rung} == {
                trial.rungs[place][0] for trial in there
            }
            assert min(values[trial.number] for trial in on) > max(
                values[trial.number] for trial in there if trial not in on
            )
    best = best_of(made, search.measure)
    ends = [trial for trial in made if not trial.pruned and trial.measured]
    assert len(ends) == 2 and best in ends
    assert sum(trial.trained for trial in made) == 2 * 2 * (4 * 1 + 2 * 2 + 1 * 3)


def test_optuna_is_told_of_pruned_trials_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    tell = optuna.Study.tell

    def note(study: optuna.Study, trial: optuna.Trial, *values: Any, **more: Any) -> Any:
        found = tell(study, trial, *values, **more)
        told.append((found.number, found.state.name, [*found.intermediate_values]))
        return found

    monkeypatch.setattr(optuna.Study, "tell", note)
    made = carry_out(search_in(tmp_path, trials=8, bracket=HALVING), by_workers(8), lambda: False, lambda trials: None)
    state = {(False, False): "COMPLETE", (True, False): "PRUNED", (False, True): "FAIL"}
    assert told == [
        (trial.number - 1, state[trial.pruned, trial.measured is None], [rung for rung, _ in trial.rungs])
        for trial in made
    ]


def test_the_order_in_which_cells_end_changes_nothing(tmp_path: Path) -> None:
    found = _carried_out(search_in(tmp_path / "a"))
    assert len(found) == 10 and len({row[1] for row in found}) == 10
    assert found == _carried_out(search_in(tmp_path / "b"), in_order(lambda cell: (-cell.seed, hash(cell.name))))
    assert found != _carried_out(replace(search_in(tmp_path / "c"), sampler_seed=1))


@pytest.mark.parametrize("bracket", [None, HALVING])
def test_a_kill_changes_nothing(tmp_path: Path, bracket: Bracket | None) -> None:
    whole = _carried_out(search_in(tmp_path / "a", trials=12, bracket=bracket))
    made: list[Cell] = []

    def until_killed(cells: Sequence[Cell]) -> dict[str, str]:
        for cell in reversed(cells):
            if len(made) % 5 == 4:
                made.append(cell)
                raise KeyboardInterrupt
            make(cell)
            made.append(cell)
        return {}

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            _carried_out(search_in(tmp_path / "b", trials=12, bracket=bracket), until_killed)
    assert whole == _carried_out(search_in(tmp_path / "b", trials=12, bracket=bracket))
    assert not [*tmp_path.rglob(".*.run")]


def test_more_trials_go_on_from_those_that_are_there(tmp_path: Path) -> None:
    first = _carried_out(search_in(tmp_path, trials=6))
    asked: list[Cell] = []

    def compute(cells: Sequence[Cell]) -> dict[str, str]:
        asked.extend(cells)
        return in_order(lambda cell: cell.name)(cells)

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
    assert best_of([*trials, Trial(5, {}, (), (2.0,) if best == 2 else (0.0,), pruned=True)], search.measure) == found


def test_trials_without_the_column_of_the_measure_are_one_sentence(tmp_path: Path) -> None:
    """They were called failed, and reasons looked for in files that were not there."""
    message = r"--measure validation_loss: the run trial . / seed 0 has no column validation_loss\. .*: validation_acc"
    with pytest.raises(ConfigError, match=message):
        _carried_out(search_in(tmp_path, "validation_loss"))


def test_a_trial_without_room_on_the_disk_is_no_failed_trial(tmp_path: Path) -> None:
    search, full = search_in(tmp_path, trials=4), "Cannot write: No space left on device."
    with pytest.raises(RaysimError, match="seed 0: Cannot write: No space left"):
        carry_out(search, lambda cells: {cell.name: full for cell in cells}, lambda: False, lambda trials: None)
    assert len(carry_out(search, in_order(lambda cell: cell.name), lambda: False, lambda trials: None)) == 4
