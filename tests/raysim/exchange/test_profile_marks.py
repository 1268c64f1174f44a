"""The clock that the processes of a machine share, and the marks of a job."""

from dataclasses import replace

import pytest

from raysim.exchange import profile_marks
from raysim.exchange.profile_marks import Clock, Marks, clock, now, share_clock


@pytest.fixture(autouse=True)
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_marks, "_clock", Clock("this start", 100.0))


def test_a_process_counts_from_the_reading_of_the_one_that_started_it() -> None:
    """A wall clock that was set back by ten seconds between their starts does not tell them apart."""
    before = now()
    share_clock(replace(clock(), zero=110.0))
    assert 10.0 <= now() - before < 11.0


@pytest.mark.parametrize("other", [Clock("another machine", 7.0), Clock("", 7.0)])
def test_the_clock_of_another_machine_is_not_taken(other: Clock) -> None:
    share_clock(other)
    assert clock() == Clock("this start", 100.0)


def test_machines_without_a_name_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_marks, "_clock", Clock("", 100.0))
    share_clock(Clock("", 7.0))
    assert clock().zero == 100.0


def test_marks_are_noted_only_where_they_are_asked_for() -> None:
    noted, nothing = Marks(True), Marks(False)
    for marks in (noted, nothing):
        marks("train", 3)
    assert [(mark.phase, mark.client) for mark in noted.found()] == [("train", 3)] and not nothing.found()
