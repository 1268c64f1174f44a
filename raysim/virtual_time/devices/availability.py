"""When each client can be reached: windows of virtual time, once or repeated with a period."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Absence:
    """Clients that leave at one time and are back at another, inf if never."""

    clients: frozenset[int] = frozenset()
    start: float = math.inf
    end: float = math.inf


@dataclass(frozen=True, eq=False)
class Availability:
    """Windows [start, end) of every client, in seconds.

    A client's windows are in ascending order and do not meet. Within ``[0, period)`` they come again in every period;
    a period of inf is time that passes once.
    """

    starts: tuple[tuple[float, ...], ...]
    """Seconds at which the intervals begin in which each client is available."""
    ends: tuple[tuple[float, ...], ...]
    period: float = math.inf
    absence: Absence = Absence()
    """Clients who are away although they have a window."""

    def until(self, client: int, time: float) -> float:
        """When the window that holds ``time`` ends; -inf if the client is not available then."""
        if client not in self.absence.clients or time >= self.absence.end:
            return self._until(client, time)
        return -math.inf if time >= self.absence.start else min(self._until(client, time), self.absence.start)

    def next(self, client: int, time: float) -> float:
        """The first moment from ``time`` on at which the client is available; inf if there is none."""
        found, absence = self._next(client, time), self.absence
        if client not in absence.clients or not absence.start <= found < absence.end:
            return found
        return math.inf if math.isinf(absence.end) else self._next(client, absence.end)

    def _until(self, client: int, time: float) -> float:
        """When the window that holds ``time`` ends; -inf if none does.

        A window that ends with the period and the next period's first one are one where they meet.
        """
        period, number = self._place(client, time)
        if number < 0 or time >= self._moment(period, self.ends[client][number]):
            return -math.inf
        end = self.ends[client][number]
        if end < self.period or self.starts[client][0] > 0:
            return self._moment(period, end)
        # It goes on into the next period; if that window is all of a period, for ever.
        return math.inf if self.ends[client][0] >= self.period else self._moment(period + 1, self.ends[client][0])

    def _next(self, client: int, time: float) -> float:
        """The first moment from ``time`` on that a window holds; inf if there is none."""
        if self._until(client, time) > time:
            return time
        period, number = self._place(client, time)
        if number + 1 < len(self.starts[client]):
            return self._moment(period, self.starts[client][number + 1])
        if math.isinf(self.period) or not self.starts[client]:
            return math.inf
        return self._moment(period + 1, self.starts[client][0])

    def _place(self, client: int, time: float) -> tuple[int, int]:
        """Number of the period that holds ``time``, from 0, and the last window that has begun by then; −1: none.

        Quotient and difference are rounded: a period and a window have begun once :meth:`_moment` says so, or a clock
        that goes on to the next window would never find it open.
        """
        period = 0 if math.isinf(self.period) else math.floor(time / self.period)
        period += (self._moment(period + 1, 0.0) <= time) - (self._moment(period, 0.0) > time)
        starts = self.starts[client]
        number = bisect_right(starts, time - self._moment(period, 0.0)) - 1
        begun = number + 1 < len(starts) and self._moment(period, starts[number + 1]) <= time
        return period, number + begun

    def _moment(self, period: int, seconds: float) -> float:
        """Virtual seconds at which these seconds of a period have passed; all periods are counted from 0."""
        return (period * self.period if period else 0.0) + seconds


def daily(begins: Times, lengths: Times) -> Availability:
    """One window a day for each client.

    Args:
        begins: when it begins, in seconds after midnight [n].
        lengths: how long it is, in seconds [n], at most a day; it may go on after midnight.
    """
    windows = []
    for begin, length in zip((begins % DAY).tolist(), lengths.tolist(), strict=True):
        end = begin + length
        if length >= DAY:
            windows.append([(0.0, DAY)])
        elif end <= DAY:
            windows.append([(begin, end)])
        else:
            windows.append([(0.0, end - DAY), (begin, DAY)])
    return from_windows(windows, DAY)


def absent(availability: Availability | None, absence: Absence, clients: int) -> Availability:
    """The same with an absence; None: all clients are always there otherwise."""
    always = Availability(((0.0,),) * clients, ((math.inf,),) * clients)
    return replace(availability or always, absence=absence)


def from_windows(windows: Sequence[Sequence[tuple[float, float]]], period: float = math.inf) -> Availability:
    """Availability from each client's windows (start, end).

    Raises:
        ValueError: a window without length, before 0 or beyond the period, or two that overlap; the text says which.
    """
    for client, own in enumerate(windows):
        before = 0.0
        for start, end in own:
            if not 0 <= start < end <= period:
                raise ValueError(f"client {client}: window {start:g}-{end:g} is not 0 ≤ start < end ≤ {period:g}")
            if start < before:
                raise ValueError(f"client {client}: window {start:g}-{end:g} begins before the one before has ended")
            before = end
    merged = [_merged(own) for own in windows]
    return Availability(
        tuple(tuple(start for start, _ in own) for own in merged),
        tuple(tuple(end for _, end in own) for own in merged),
        period,
    )


DAY = 86_400.0
"""Seconds of a day."""


def _merged(windows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same windows, with those that meet made one."""
    result: list[tuple[float, float]] = []
    for start, end in windows:
        if result and result[-1][1] == start:
            start = result.pop()[0]
        result.append((start, end))
    return result
