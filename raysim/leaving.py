"""Code of a user's own that would end the program, by ``sys.exit`` or ``os._exit``: an error of who calls it."""

from __future__ import annotations

import os
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Never

from raysim.errors import RaysimError, reason_of

_END_NOW = os._exit
_LOCK = threading.Lock()
_STAYING: Counter[tuple[int, int]] = Counter()
"""How often each (process, thread) is within :func:`staying`; a child that was forked has another process."""


class OsExit(SystemExit):
    """``os._exit`` was called, which would end the process at once, with its rounds unsaved."""

    called = "os._exit"


@contextmanager
def staying() -> Iterator[None]:
    """Within it, ``os._exit`` of this thread raises SystemExit instead; other threads and forked children may leave.

    Raises:
        RaysimError: in the place of a SystemExit that is not caught.
    """
    here = _here()
    with _LOCK:
        _STAYING[here] += 1
        os._exit = _raise_instead
    try:
        yield
    except SystemExit as error:
        found = RaysimError(reason_of(error))
        found.traceback = traceback.format_exc()
        raise found from error
    finally:
        with _LOCK:
            _STAYING[here] -= 1
            if not +_STAYING:
                _STAYING.clear()
                os._exit = _END_NOW


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


def _raise_instead(status: int) -> Never:
    if _STAYING[_here()] > 0:
        raise OsExit(status)
    _END_NOW(status)
