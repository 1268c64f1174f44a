"""SIGTERM from a node manager or a batch system, in the middle of a task; with a run: test_faults.py."""

from __future__ import annotations

import signal
import subprocess
import sys

AS_RAY_DOES = """
import os, signal, sys
from raysim.actors.sigterm import ends_by_sigterm
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
ends_by_sigterm()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except SystemExit:
    print("taken for an error")
"""


def test_it_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", AS_RAY_DOES], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
