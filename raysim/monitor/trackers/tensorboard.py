"""A run's curves for TensorBoard: every column of the rounds table, and accuracies against what they cost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from raysim import columns
from raysim.monitor.tracker import Tracked, Tracker

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoard(Tracker):
    """Writes event files into the folder ``tensorboard`` of a run while it goes on, of a study's cell beside its row.

    Method, workload, seed and folder are texts, as the head of its proof is at the end. TensorBoard's steps are whole
    numbers: rounds, and for costs megabytes (10^6, sent and received by then) and virtual seconds, rounded.
    """

    package = "tensorboard"

    def begin(self, run: Tracked, earlier: str) -> str:
        """Begin the event files, in the place of those of a run that goes on."""
        from torch.utils.tensorboard import SummaryWriter

        folder = self.place("tensorboard")
        shutil.rmtree(folder, ignore_errors=True)
        self._writer: SummaryWriter = SummaryWriter(str(folder))
        for name, text in run.tags.items():
            self._writer.add_text(name, text)
        self._bytes = 0.0
        return ""

    def log(self, number: int, values: Mapping[str, float]) -> None:
        """Add the round to the curves."""
        self._bytes += values.get("bytes_down", 0.0) + values.get("bytes_up", 0.0)
        for name, value in values.items():
            self._writer.add_scalar(f"rounds/{name}", value, number)
        seconds = values.get("virtual_seconds")
        for name, _ in columns.shown("against_costs"):
            if name in values:
                self._writer.add_scalar(f"megabytes/{name}", values[name], round(self._bytes / 1e6))
                if seconds is not None:
                    self._writer.add_scalar(f"virtual_seconds/{name}", values[name], round(seconds))
        self._writer.flush()

    def end(self, status: str, proof: str) -> None:
        """Add the head of the proof; all is in the files then."""
        if proof:
            self._writer.add_text("proof", proof)
        self._writer.close()


TRACKER = TensorBoard
