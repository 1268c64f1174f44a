"""The curve and the page of a run, drawn by the launching process beside what else ends a run.

The plotting library takes longer to load than the driver takes to write its tables, and drawing longer than Ray takes
to end. Here it costs no process memory while clients are trained.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.engine.observer import Silent
from raysim.results.result import load_result
from raysim.schedule import planned_intervals
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_record import run_title

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

THREAD = "pictures of the run"
"""Name of the threads that draw."""
LOOK = 0.02
"""Seconds between two looks at whether the summary is there, the last file that pictures are made of."""


class Pictures(Silent):
    """An observer that draws as soon as the tables are complete; nothing of a run that does not finish.

    Args:
        folder: the run's.
    """

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self._folder, self._last = folder, len(planned_intervals(config))
        self._ended, self._status = threading.Event(), ""
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """Begin with the last round that was planned."""
        if row["round"] >= self._last:
            self._begin()

    def ended(self, status: str) -> None:
        """Say how the run ended, when all other files are in its folder."""
        self._status = status
        self._ended.set()

    def finish(self) -> str:
        """Draw what is not drawn yet, and wait for it; returns the status. Errors are those of the drawing."""
        if self._status == "finished":
            self._begin()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._status

    def _begin(self) -> None:
        if self._thread is None:
            # A daemon: after a second Ctrl-C this process ends without it.
            self._thread = threading.Thread(target=self._draw, name=THREAD, daemon=True)
            self._thread.start()

    def _draw(self) -> None:
        try:
            # While the driver still writes: most of a second of loading.
            for name in ("pandas", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"):
                importlib.import_module(name)

            from raysim.report import plots, run_page

            while not (self._folder / "summary.json").exists() and not self._ended.wait(LOOK):
                pass
            if self._status in ("", "finished"):
                result = load_result(self._folder)
                curve = plots.run_picture(result.rounds, run_title(result.config, result.summary))
                write_atomically(self._folder / "curve.png", curve)
                run_page.page(self._folder, result, self._wait)
        except _LeftError:
            pass
        except Exception as error:
            self._error = error

    def _wait(self) -> None:
        """Wait for the table of the partition, which another process may still write."""
        self._ended.wait()
        if self._status != "finished":
            raise _LeftError


class _LeftError(Exception):
    """The run has not finished after all."""
