"""A method is told how many clients there are: SCAFFOLD with sampled and late clients, worked out by hand."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from raysim.cohort import UNKNOWN, Cohort, cohort_of
from raysim.config.run_config import build
from raysim.engine.load_federation import load_federation
from raysim.running.simulation import run
from raysim.workloads.parallel_map import sequential
from tests.raysim.scaffold import FOUR_ROUNDS
from tests.small_runs import small_run

# Clients 0 to 3 have targets 0, 4, 8, 16 and 2, 4, 6, 4 samples. A step is x - (x - t - c_i + c)/2, and c_i becomes the
# gradient x - t.
SAMPLED = {
    # {1, 3} move to 2 and 8; c = 2/4 · mean(-4, -16). {0, 1} meet corrected gradients 5 - 5 and 1 + 4 - 5, both 0, and
    # c grows by 1/2 · mean(5, 5). {0, 1} again: both -5/2. {1, 2}: -5/4 and -17/4, c grows by 1/2 · mean(5/4, -7/4).
    "weight": [5.0, 5.0, 6.25, 7.625],
    "control": [-5.0, -2.5, -2.5, -2.625],
    "cohort_size": [2, 2, 2, 2],
    "cohort_samples": [8, 6, 6, 10],
    "cohort_present": [4, 4, 4, 4],
    "cohort_present_samples": [16, 16, 16, 16],
    "cohort_existing": [4, 4, 4, 4],
}
JOINING = {
    # One of two, {0} and then {1}, twice; then two of four, {0, 1} and {1, 2}. c is the mean of c_i over all four.
    # {0} is at its target. {1}: to 2, c = 1/4 · (-4). {0, 1}: 2 - 1 and -2 + 4 - 1, both 1, c grows by 1/4 · (2 + 2).
    # {1, 2}: -5/2 + 2 and -13/2, c grows by 1/4 · (-1/2 - 13/2).
    "weight": [0.0, 2.0, 1.5, 3.25],
    "control": [0.0, -1.0, 0.0, -1.75],
    "cohort_size": [1, 1, 2, 2],
    "cohort_samples": [2, 4, 6, 10],
    "cohort_present": [2, 2, 4, 4],
    "cohort_present_samples": [6, 6, 16, 16],
    "cohort_existing": [4, 4, 4, 4],
}
POOLED = {
    # The mean target by samples is 8, and the union's c follows its c_0, so that half of the way is left each time.
    "weight": [4.0, 6.0, 7.0, 7.5],
    "control": [-8.0, -4.0, -2.0, -1.0],
    "cohort_size": [1, 1, 1, 1],
    "cohort_samples": [16, 16, 16, 16],
    "cohort_present": [1, 1, 1, 1],
    "cohort_present_samples": [16, 16, 16, 16],
    "cohort_existing": [1, 1, 1, 1],
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, SAMPLED),
        ({"schedule__joins": (2, 2), "schedule__join_every": 2}, JOINING),
        ({"method__union": True}, POOLED),
    ],
    ids=["sampled", "late joiners", "pooled"],
)
def test_scaffold_by_hand(tmp_path: Path, options: dict[str, Any], expected: dict[str, list[float]]) -> None:
    result = run(small_run(tmp_path / "run", FOUR_ROUNDS, **options))
    assert {name: result.rounds[name].tolist() for name in expected} == expected
    clients = result.clients
    totals = result.rounds.set_index("round")
    for name, total in (("share", "cohort_present_samples"), ("share_of_cohort", "cohort_samples")):
        by_hand = clients["samples"] / totals[total].loc[clients["round"]].to_numpy()
        assert clients[name].tolist() == clients[f"server_{name}"].tolist() == by_hand.tolist()
    rates = (totals["cohort_size"] / totals["cohort_present"]).loc[clients["round"]]
    assert clients["rate"].tolist() == rates.tolist()


class Counted:
    """A federation that counts how often it is asked for a client's samples."""

    def __init__(self, federation: Any) -> None:
        self._federation, self.asked = federation, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._federation, name)

    def samples(self, client: int) -> int:
        self.asked += 1
        return int(self._federation.samples(client))


def test_a_million_clients_cost_no_more_than_the_cohort() -> None:
    options = {"method.name": "fedavg", "workload.partition": "views", "workload.clients": 1_000_000}
    federation = Counted(load_federation(build([options]), sequential))
    each = federation.samples(0)
    federation.asked = 0
    tracemalloc.start()
    cohort = cohort_of(federation, [7, 400_000, 999_999], 1_000_000, 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cohort == Cohort(3, 3 * each, 1_000_000, 1_000_000 * each, 1_000_000)
    assert federation.asked == 3
    assert peak < 10_000
    assert len(pickle.dumps(cohort)) < 200


@pytest.mark.parametrize(
    "options",
    [
        {"workload.name": "digits"},
        {"workload.name": "digits", "workload.partition": "iid", "workload.samples_per_client": 400},
        {"workload.name": "digits", "workload.partition": "views"},
        {"workload.name": "toy-graphs", "model.name": "gin", "workload.graphs_per_client": 30},
    ],
    ids=["split", "filled", "views", "graphs"],
)
def test_the_first_clients_samples_add_up(options: dict[str, Any]) -> None:
    federation = load_federation(build([{"method.name": "fedavg", "workload.clients": 5} | options]), sequential)
    sums = [sum(map(federation.samples, range(count))) for count in range(6)]
    assert [federation.total_samples(count) for count in range(6)] == sums
    assert all(type(federation.total_samples(count)) is int for count in range(6))
    if options["workload.name"] == "digits":  # the toy graphs' clients have tasks of their own, and no union
        union = federation.pooled()
        assert union.total_samples(1) == union.samples(0)


def test_a_task_made_by_hand_without_a_cohort_gives_no_wrong_number() -> None:
    with pytest.raises(ZeroDivisionError):
        _ = UNKNOWN.rate
    with pytest.raises(ZeroDivisionError):
        UNKNOWN.share(5)


def test_the_planned_number_is_that_of_all_rounds() -> None:
    """|S| of cohorts of fixed size; q N of Poisson cohorts, whoever takes part."""
    assert Cohort(3, 30, 10, 100, 10).planned == 3
    assert Cohort(13, 130, 20, 200, 20, steps_take=10).planned == 10  # over-selected in virtual time
    assert Cohort(0, 0, 10, 100, 10, 0.25).planned == Cohort(7, 70, 10, 100, 10, 0.25).planned == 2.5
