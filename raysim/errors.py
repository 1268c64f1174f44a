"""Errors a user can cause or mend; each message is complete by itself (what, where, allowed values, next step).

Their base, :class:`RaysimError`, stands in workloads/errors.py with the error of data, where both packages reach it.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial

from raysim.workloads.errors import RaysimError as RaysimError
from raysim.workloads.errors import reason_of as reason_of

FINISHED, FAILED, REFUSED, STOPPED = 0, 1, 2, 130
"""Exit codes of every command. REFUSED: the request cannot be met (options, data, a folder); STOPPED: by Ctrl-C."""


class ConfigError(RaysimError):
    """An option is unknown, out of range, or contradicts another."""


class CheckpointError(RaysimError):
    """A checkpoint cannot be written, or does not fit the run it is loaded into."""


class DamagedError(CheckpointError):
    """Something in a run folder is not what the run wrote there; without an earlier checkpoint it cannot go on."""

    resumable = False


class ResultsError(RaysimError):
    """A run folder cannot be written or is not one."""


class DiskFullError(CheckpointError, ResultsError):
    """No room is left, or the quota is used up: what was there before is whole, and a later try may succeed."""


class GpuMemoryError(RaysimError):
    """torch ran out of a GPU's memory: no fault of the client's, and another time there may be more of it."""


class HostMemoryError(RaysimError):
    """A process got no more main memory: no fault of the client's, and on another machine there may be more of it."""


class PlacementError(RaysimError):
    """The cluster can never give the actors that were asked for, or Ray cannot start."""


class LostError(RaysimError):
    """A state or a sum that the run needs was in the memory of a node that is gone.

    Not an end: the run goes back to its last checkpoint (raysim/engine/recovery.py).
    """


class ClientError(RaysimError):
    """A client task failed: names client, round and stage, and carries the first traceback as text.

    ``traceback`` is empty when the failure is a finding of raysim itself (an update with NaN, say).
    """

    def __init__(self, message: str, *, client: int, round: int, stage: str, traceback: str = "") -> None:
        super().__init__(message)
        self.client = client
        self.round = round
        self.stage = stage
        self.traceback = traceback

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default pickling of exceptions; Ray sends these between processes.
        again = partial(ClientError, client=self.client, round=self.round, stage=self.stage, traceback=self.traceback)
        return again, (str(self),)


def warn(text: str) -> None:
    """Give a warning of Python's at the line of a user's program that called raysim."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("raysim", "contextlib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def code_error(where: str, error: BaseException, traceback: str) -> RaysimError:
    """The error to raise when code of a method or workload failed ``where`` ("round 3, stage aggregate")."""
    found = RaysimError(f"{where}: {reason_of(error)}")
    found.traceback = traceback
    return found
