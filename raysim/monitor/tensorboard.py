"""A run's curves for TensorBoard: every column of the rounds table, and accuracies against what they cost."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import columns
from raysim.engine.observer import Silent
from raysim.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoard(Silent):
    """Writes event files into the folder ``tensorboard`` of a run while it goes on.

    TensorBoard's steps are whole numbers: rounds, and for costs megabytes (10^6, sent and received by then) and virtual
    seconds, rounded. A resumed run writes the rounds before anew from its table, so that no curve goes back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: SummaryWriter | None = None
        self._bytes = 0.0

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """Add the round to the curves."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            folder = self._path / "tensorboard"
            shutil.rmtree(folder, ignore_errors=True)
            self._writer = SummaryWriter(str(folder))
            rounds = RunFolder.open(self._path).rounds()
            for earlier in rounds[rounds["round"] < row["round"]].to_dict("records") if len(rounds) else []:
                self._write(self._writer, earlier)
        self._write(self._writer, row)
        self._writer.flush()

    def close(self) -> None:
        """All is in the files."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, writer: SummaryWriter, row: Mapping[str, Any]) -> None:
        number = int(row["round"])
        values = {
            name: float(value)
            for name, value in row.items()
            if name != "round" and isinstance(value, int | float) and not math.isnan(value)
        }
        self._bytes += values.get("bytes_down", 0.0) + values.get("bytes_up", 0.0)
        for name, value in values.items():
            writer.add_scalar(f"rounds/{name}", value, number)
        for name, _ in columns.shown("against_costs"):
            if name in values:
                writer.add_scalar(f"megabytes/{name}", values[name], round(self._bytes / 1e6))
                if "virtual_seconds" in values:
                    writer.add_scalar(f"virtual_seconds/{name}", values[name], round(values["virtual_seconds"]))
