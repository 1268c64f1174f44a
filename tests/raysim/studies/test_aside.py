"""Calls beside a loop, in threads that are held by hand."""

from __future__ import annotations

import threading

import pytest

from raysim.studies.aside import Aside


def test_the_loop_does_not_wait_and_one_call_is_at_work_at_a_time() -> None:
    begun, free, calls = threading.Semaphore(0), threading.Semaphore(0), list[int]()

    def work() -> None:
        calls.append(len(calls))
        begun.release()
        assert free.acquire(timeout=300)

    with Aside(work) as aside:
        aside.call()
        assert begun.acquire(timeout=300)
        aside.call()  # is left out
        assert calls == [0]
        free.release()
    assert calls == [0]


def test_an_error_is_raised_by_the_next_call_or_at_the_end() -> None:
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"), Aside(fail) as aside:
        aside.call()
    with pytest.raises(OSError, match="no room"), Aside(fail) as aside:
        for _ in range(10_000):  # until the first has ended
            aside.call()
    with pytest.raises(KeyError), Aside(fail) as aside:
        aside.call()
        raise KeyError
