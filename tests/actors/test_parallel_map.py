"""Items as Ray tasks: the same results as in process, in order, and errors that say which item."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ray import cloudpickle

from raysim.actors.parallel_map import RETRIES, RayParallel
from raysim.errors import RaysimError
from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.spectra import compute_spectra
from raysim.workloads.parallel_map import sequential
from tests.made_graphs import graphs_of, ring

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def slow_square(number: int) -> int:
    time.sleep(0.05 if number == 0 else 0.0)  # the first is the last to be finished
    return number * number


def fails_at_three(number: int) -> int:
    if number == 3:
        raise ValueError("three is wrong")
    return number


def has_bad_data(number: int) -> int:
    raise WorkloadError("no such graph; choose another")


def dies(job: tuple[Path, int]) -> int:
    """Takes its process with it as often as asked for."""
    log, deaths = job
    with log.open("a") as file:
        file.write("x")
    if log.stat().st_size <= deaths:
        os._exit(1)
    return log.stat().st_size


def test_the_results_are_those_in_process_in_the_order_of_the_items(ray_session: None) -> None:
    seen: list[tuple[str, int, int]] = []
    parallel = RayParallel(lambda *progress: seen.append(progress))
    assert parallel(slow_square, range(7), "squares") == sequential(slow_square, range(7), "squares")
    assert seen == [("squares", done, 7) for done in range(8)]
    assert parallel(slow_square, [], "squares") == []


def test_spectra_from_tasks_are_bit_for_bit_those_in_process(ray_session: None) -> None:
    sets = [graphs_of(ring(nodes)) for nodes in (3, 5, 40)]
    here = compute_spectra(sets, "normalized", sequential, None)
    there = compute_spectra(sets, "normalized", RayParallel(), None)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.eigenvalues, other.eigenvalues)
        np.testing.assert_array_equal(one.eigenvectors, other.eigenvectors)


def test_an_exception_names_label_and_part_and_carries_its_traceback(ray_session: None) -> None:
    with pytest.raises(RaysimError) as caught:
        RayParallel()(fails_at_three, range(5), "numbers")
    assert str(caught.value) == "numbers, part 4 of 5: ValueError: three is wrong"
    assert 'raise ValueError("three is wrong")' in caught.value.traceback


def test_bad_input_is_told_in_its_own_words(ray_session: None) -> None:
    with pytest.raises(RaysimError, match=r"^graphs, part 1 of 1: no such graph; choose another$"):
        RayParallel()(has_bad_data, [1], "graphs")


def test_what_a_dead_worker_had_is_done_again(ray_session: None, tmp_path: Path) -> None:
    assert RayParallel()(dies, [(tmp_path / "log", RETRIES)], "deaths") == [RETRIES + 1]


def test_an_item_that_always_kills_its_worker_is_given_up(ray_session: None, tmp_path: Path) -> None:
    with pytest.raises(RaysimError, match=rf"deaths, part 1 of 1: its worker died {RETRIES + 1} times, most likely"):
        RayParallel()(dies, [(tmp_path / "log", 99)], "deaths")
    assert len((tmp_path / "log").read_text()) == RETRIES + 1


def note(job: tuple[Path, int]) -> None:
    """The first one fails; the others wait until it has begun."""
    log, number = job
    for _ in range(2000):
        if number == 0 or (log.exists() and "0\n" in log.read_text()):
            break
        time.sleep(0.01)
    with log.open("a") as file:
        file.write(f"{number}\n")
    if number == 0:
        raise ValueError("the first is wrong")
    time.sleep(0.1)


def test_after_a_failure_what_was_not_sent_is_left(ray_session: None, tmp_path: Path) -> None:
    with pytest.raises(RaysimError, match="part 1 of 100"):
        RayParallel()(note, [(tmp_path / "log", number) for number in range(100)], "notes")
    time.sleep(1.0)
    # Three cores: six are sent at first, and another for each that came back before the first did.
    assert len((tmp_path / "log").read_text().split()) < 50
