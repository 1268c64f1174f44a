"""The base of all errors of the project, and the error of data and models.

They stand here because ``workloads`` and ``aggregators`` know nothing of ``raysim``, whose errors (raysim/errors.py)
have the same base.
"""

from __future__ import annotations


class RaysimError(Exception):
    """Base of every error that ends a run with one clear message instead of a traceback."""

    traceback: str = ""
    """The first traceback, where the cause lies in code (a method's, say); empty where the message says it all."""
    resumable: bool = True
    """Whether ``--resume`` is a next step; if not, the message names another one."""


class WorkloadError(RaysimError):
    """Data, a split or a model cannot be had as asked; the message says what, where and what to do next."""


def reason_of(error: BaseException) -> str:
    """An exception in one line: its type and words.

    For ``sys.exit`` and ``os._exit`` it says that no code of a run may end the program.
    """
    if isinstance(error, RaysimError):
        return str(error)
    if isinstance(error, SystemExit):
        called = f"{getattr(error, 'called', 'sys.exit')}({error.code!r})"
        return f"SystemExit: {called} was called, and code of a run may not end the program"
    return f"{type(error).__name__}: {error}"
