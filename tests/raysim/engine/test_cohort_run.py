"""Client tasks in virtual time run ahead: sent when their state is known, awaited when a step takes their update."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from raysim.client_side.train_chunk import TrainChunk
from raysim.engine import cohort_run
from raysim.engine.inline_backend import InlinePool
from raysim.engine.update_spill import UpdateSpill
from raysim.exchange.pool_protocol import Job
from raysim.method import Context, Updates
from raysim.running.simulation import run
from tests.raysim.virtual_time.test_virtual_time import config
from tests.watch import stopped


def test_every_task_is_sent_in_its_round_and_awaited_by_the_step_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int, int]] = []
    awaited: list[list[tuple[int, int, int]]] = []
    run_jobs = InlinePool.run

    def told(jobs: Sequence[Job]) -> list[tuple[int, int, int]]:
        tasks = [(job.task, job.before) for job in jobs if isinstance(job.task, TrainChunk)]
        return [(task.task.round, taken, client) for task, taken in tasks for client in task.clients]

    def recorded(pool: InlinePool, jobs: Sequence[Job], *others: Any) -> Any:
        if told(jobs):
            awaited.append(told(jobs))
        return run_jobs(pool, jobs, *others)

    monkeypatch.setattr(InlinePool, "send_ahead", lambda pool, jobs: sent.extend(told(jobs)))
    monkeypatch.setattr(InlinePool, "run", recorded)
    clients = run(config(tmp_path / "run", "buffered")).clients
    rows = clients[["round", "staleness", "client"]].astype(int).to_numpy().tolist()
    expected = [(number - staleness, number, client) for number, staleness, client in rows]
    assert any(begun < taken for begun, taken, _ in expected)
    assert sorted(sent) == sorted(expected)
    assert [sorted(tasks) for tasks in awaited] == [
        sorted(task for task in expected if task[1] == number) for number in range(1, 8)
    ]
    assert [begun for begun, _, _ in sent] == sorted(begun for begun, _, _ in sent)


def test_a_resumed_run_begins_again_only_what_was_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, sent = config(tmp_path / "run", "buffered"), list[tuple[int, int]]()
    folder = stopped(settings, rounds=3)

    def told(pool: InlinePool, jobs: Sequence[Job]) -> None:
        sent.extend((job.task.task.round, job.before) for job in jobs if isinstance(job.task, TrainChunk))

    monkeypatch.setattr(InlinePool, "send_ahead", told)
    run(settings, resume=folder)
    assert any(begun <= 3 for begun, _ in sent)
    assert min(taken for _, taken in sent) > 3


def test_the_updates_of_a_step_share_one_spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one for each version that it takes, they would hold several times the memory that is allowed."""
    steps: list[int] = []

    class Counted(UpdateSpill):
        def __init__(self, room: int, folder: Path) -> None:
            super().__init__(room, folder)
            steps.append(room)

    monkeypatch.setattr(cohort_run, "UpdateSpill", Counted)
    clients = run(config(tmp_path / "run", "buffered")).clients
    assert clients.groupby("round")["staleness"].nunique().max() > 1
    assert len(steps) == clients["round"].nunique()


@pytest.mark.parametrize("options", [{}, {"defense__rule": "median"}, {"method__name": "fedld"}])
@pytest.mark.parametrize("mode", ["sync", "buffered"])
def test_a_method_is_told_how_stale_each_update_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, options: dict[str, str]
) -> None:
    settings, told = config(tmp_path / "run", mode, **options), list[tuple[int, int, int]]()
    aggregate = type(settings.method).aggregate

    def recorded(self: Any, server: Any, updates: Updates, context: Context) -> Any:
        told.extend((context.round, *pair) for pair in zip(updates.clients, updates.staleness, strict=True))
        return aggregate(self, server, updates, context)

    monkeypatch.setattr(type(settings.method), "aggregate", recorded)
    table = run(settings).clients[["round", "client", "staleness"]].astype(int)
    assert told == [tuple(row) for row in table.to_numpy().tolist()]
    assert (table["staleness"].max() > 0) == (mode == "buffered")
