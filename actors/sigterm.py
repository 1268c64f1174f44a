"""SIGTERM in a process of Ray's ends the process, and is no error of the code that runs in it."""

from __future__ import annotations

import signal
import threading


def ends_by_sigterm() -> None:
    """Let SIGTERM end this process at once from here on, so that its work is done again elsewhere.

    Ray's workers raise SystemExit instead, in the middle of a task: what answers for a client's own code would take
    that for a ``sys.exit`` of the client's, and leave the client out or give the cell up.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
