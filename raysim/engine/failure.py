"""A client task that gave no usable update."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Which client it was, in which stage of its task, and why."""

    client: int
    stage: str
    reason: str
    traceback: str = ""
