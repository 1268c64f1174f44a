"""News of a cell's run for who shows them: round, accuracy, seconds left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raysim.engine.observer import Silent

PAUSE = 0.2
"""Least number of seconds between two pieces of news."""


@dataclass(frozen=True)
class News:
    """The state of a cell's run after a round, or a note on it."""

    round: int = 0
    """The last whole round."""
    rounds: int = 0
    accuracy: float = math.nan
    """The last that was measured; NaN: none yet."""
    seconds_left: float = math.nan
    note: str = ""


class Reporter(Silent):
    """An observer that tells of rounds as they end, at most a few times a second.

    Args:
        rounds: planned in all.
        tell: takes the news.
    """

    def __init__(self, rounds: int, tell: Callable[[News], None]) -> None:
        self._rounds, self._tell = rounds, tell
        self._first: tuple[int, float] | None = None
        self._told = 0.0
        self._begun = False
        self._accuracy = math.nan

    def note(self, text: str) -> None:
        """Pass on what a user should know, of the cell alone."""
        self._tell(News(note=text))

    def preparing(self, label: str, done: int, total: int) -> None:
        """Tell that the cell has begun: it is this process's."""
        if not self._begun:
            self._tell(News(rounds=self._rounds))
        self._begun = True

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        """From the first round of this process on its pace is known."""
        if self._first is None:
            self._first = (round - 1, time.monotonic())
            self._tell(News(round - 1, self._rounds))

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """Tell of the round."""
        accuracy = row.get("accuracy", math.nan)
        self._accuracy = self._accuracy if math.isnan(accuracy) else accuracy
        now, last = time.monotonic(), row["round"] == self._rounds
        if self._first is None or (now - self._told < PAUSE and not last):
            return
        before, begun = self._first
        left = (now - begun) / (row["round"] - before) * (self._rounds - row["round"])
        self._told = now
        self._tell(News(row["round"], self._rounds, self._accuracy, left))
