"""Rounds that wait for every client of the cohort that is not lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.virtual_time.rules._rule import RoundRule


@dataclass(frozen=True)
class Sync(RoundRule):
    """Synchronous rounds."""

    when: ClassVar[str] = "when the whole cohort is back"
    waits_for_all: ClassVar[bool] = True


KIND = Sync
