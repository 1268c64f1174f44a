"""The stores of client tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.client_side.worker import Worker
from raysim.cohort import Cohort
from raysim.config.sections import Training
from raysim.contribution import task_store
from raysim.contribution.task_store import Computed, SharedTaskStore, Store, StoringWorker, TaskStore
from raysim.method import ClientTask, Message, Update

ONE, OTHER = Cohort(2, 20, 3, 30, 3), Cohort(1, 10, 3, 30, 3)


def ask(store: Store, key: str, cohort: Cohort, read: Cohort | None, size: int = 1) -> Any:
    """The result of a task whose computation gives its cohort's size."""
    return store.once(key, cohort, lambda: (read, (key, cohort.size), size))


@pytest.mark.parametrize("shared", [False, True])
def test_a_cohort_counts_where_the_task_has_read_it(shared: bool, tmp_path: Path) -> None:
    store: Store = SharedTaskStore({}, tmp_path, 10) if shared else TaskStore()
    assert ask(store, "a", ONE, None) == ask(store, "a", OTHER, None) == ("a", 2)
    assert ask(store, "b", ONE, ONE) == ("b", 2) and ask(store, "b", OTHER, OTHER) == ("b", 1)
    assert ask(store, "b", ONE, ONE) == ("b", 2)
    assert (store.computed, store.taken) == (3, 2)


def test_a_key_holds_all_that_a_task_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Cohort | None]] = []

    class Asked(TaskStore):
        def once(self, key: str, cohort: Cohort, compute: Callable[[], Computed]) -> Any:
            asked.append((key, compute()[0]))

    def train(worker: Worker, task: ClientTask, message: Message, state: Any) -> tuple[Update, Any]:
        return Update(message.parameters if task.client else message.parameters * task.cohort.size), state

    monkeypatch.setattr(Worker, "train", train)
    worker = StoringWorker.__new__(StoringWorker)
    worker._store = Asked()
    sent = Message(np.zeros(2, np.float32))
    first = ClientTask(0, 1, 1, 1, 0.1, Training(), cohort=ONE)
    changes: tuple[dict[str, Any], ...] = ({}, {"round": 2}, {"local_epochs": 2}, {"learning_rate": 0.2}, {"client": 0})
    tasks = [replace(first, **change) for change in changes]
    for task in tasks:
        worker.train(task, sent, None)
    given: tuple[tuple[Message, Any], ...] = (
        (replace(sent, extra={"c": 1.0}), None),
        (sent, {"c": 1.0}),
        (sent, {"c": 2.0}),
    )
    for message, state in given:
        worker.train(first, message, state)
    assert len({key for key, _ in asked}) == len(asked) == 8
    worker.train(replace(first, cohort=OTHER), sent, None)
    assert asked[-1] == asked[0] == (asked[0][0], None)
    assert [cohort for _, cohort in asked[:5]] == [None, None, None, None, ONE]  # the one that reads its cohort


def test_the_least_recently_used_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_store, "BYTES", 10)
    store = TaskStore()
    for key in "abaca":
        ask(store, key, ONE, None, 4)
    assert (store.computed, store.taken) == (3, 2)  # c has taken the place of b
    ask(store, "b", ONE, None, 4)
    assert store.computed == 4


def test_of_two_that_share_a_store_one_computes_and_the_other_waits(tmp_path: Path) -> None:
    held: dict[str, Any] = {}
    stores = [SharedTaskStore(held, tmp_path, 10), SharedTaskStore(held, tmp_path, 10)]
    begun, found = threading.Barrier(2), []

    def work(store: SharedTaskStore) -> None:
        begun.wait()

        def compute() -> tuple[None, float, int]:
            time.sleep(0.05)
            return None, time.monotonic(), 6

        found.append(store.once("a", ONE, compute))

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] and sorted(store.computed for store in stores) == [0, 1]
    (own,) = (store for store in stores if store.computed)
    ask(own, "b", ONE, None, 6)  # beyond its bytes
    ask(own, "b", ONE, None, 6)
    assert own.computed == 3 and [*held] == ["a"]
