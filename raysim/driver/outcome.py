"""How a run ended, as plain data that every process can read."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from raysim.errors import ConfigError, DiskFullError, PlacementError, RaysimError, reason_of
from raysim.leaving import staying
from raysim.workloads.errors import WorkloadError


@dataclass(frozen=True)
class Outcome:
    """``status`` is ``finished``, ``stopped`` or ``failed``; the other two say why it failed."""

    status: str
    message: str = ""
    traceback: str = ""
    resumable: bool = True
    """Whether ``--resume`` is the next step."""
    refused: bool = False
    """Whether it failed because it cannot be done as asked: data, classes or resources, found before any round."""
    disk_full: bool = False
    """Whether it failed because no room was left on a disk: what was there before is whole, and it may go on."""


def guarded(drive: Callable[[], str]) -> Outcome:
    """Call ``drive`` and turn whatever it raises into an outcome."""
    try:
        with staying():
            return Outcome(drive())
    except RaysimError as error:
        refused = isinstance(error, (ConfigError, PlacementError, WorkloadError))
        full = isinstance(error, DiskFullError)
        return Outcome("failed", str(error), error.traceback, error.resumable, refused, full)
    except Exception as error:
        return Outcome("failed", reason_of(error), traceback.format_exc())
