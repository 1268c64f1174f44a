"""The store of client tasks."""

from __future__ import annotations

import pytest

from raysim.cohort import Cohort
from raysim.contribution import task_store
from raysim.contribution.task_store import TaskStore

ONE, OTHER = Cohort(2, 20, 3, 30, 3), Cohort(1, 10, 3, 30, 3)


def test_a_cohort_counts_where_the_task_has_read_it() -> None:
    store = TaskStore()
    store.put("a", None, "of any cohort", 1)
    store.put("b", ONE, "of one", 1)
    assert store.get("a", OTHER) == "of any cohort" and store.get("b", ONE) == "of one"
    assert store.get("b", OTHER) is None and store.get("c", ONE) is None
    store.put("b", OTHER, "of the other", 1)
    assert store.get("b", OTHER) == "of the other"
    assert (store.computed, store.taken) == (3, 3)


def test_the_least_recently_used_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_store, "BYTES", 10)
    store = TaskStore()
    store.put("a", None, 1, 4)
    store.put("b", None, 2, 4)
    assert store.get("a", ONE) == 1
    store.put("c", None, 3, 4)
    assert [store.get(key, ONE) for key in "abc"] == [1, None, 3]
