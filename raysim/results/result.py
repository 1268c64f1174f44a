"""A run's folder read back: its tables as pandas frames, config, summary and trained models."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.columns import is_timing
from raysim.remote.places import run_folder
from raysim.results.costs import cost_of
from raysim.storage.run_folder import RunFolder
from raysim.storage.run_record import read_run_config, read_summary

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame

    from raysim.config.run_config import RunConfig


@dataclass(frozen=True)
class RunResult:
    """A run's results: pandas frames of rounds and clients, the config and the summary (empty until the end)."""

    folder: Path
    config: dict[str, Any]
    rounds: DataFrame
    clients: DataFrame
    summary: dict[str, Any]
    settings: RunConfig | None = field(default=None, repr=False, compare=False)
    """The config of a run of this process; None for a folder that was only read."""

    @cached_property
    def model(self) -> torch.nn.Module:
        """The trained global model, on the CPU and in evaluation mode; read from the folder when first asked for.

        Raises:
            RaysimError: as :func:`raysim.load_model`.
        """
        return self._model_of(None)

    def client_model(self, client: int) -> torch.nn.Module:
        """The model that a client is judged by, its own where each has one; errors as of ``model``."""
        return self._model_of(client)

    def _model_of(self, client: int | None) -> torch.nn.Module:
        from raysim.results.load_model import load_model, model_of

        if self.settings is None:
            return load_model(self.folder, client)
        return model_of(self.settings, self.folder, client)

    def cost_of(self, accuracy: float) -> dict[str, Any] | None:
        """Rounds, bytes, virtual seconds and joules until the test accuracy first was ``accuracy`` (a share) or more.

        None if it never was; virtual seconds and joules are those of a run in virtual time only.
        """
        return cost_of(self.rounds, accuracy)


def load_result(path: str | Path) -> RunResult:
    """Read a run folder, finished or not.

    Args:
        path: the folder, or the remote address of one (``"s3://bucket/run"``), of which a copy is made.

    Raises:
        ResultsError: it is none, or its config or summary cannot be read.
        UnreachableError: the remote side does not answer.
    """
    path = run_folder(path)
    folder = RunFolder.open(path)
    return RunResult(path, read_run_config(path), folder.rounds(), folder.clients(), read_summary(path))


def kept_rows(rounds: DataFrame) -> str:
    """A table of rounds as comparisons keep it, a CSV: without timings, fractions in six digits."""
    return comparable(rounds).to_csv(index=False, float_format="%.6g")


def comparable(frame: DataFrame) -> DataFrame:
    """The frame without the columns that hold times and rates: what two runs of one config must share bit for bit."""
    return frame.drop(columns=[name for name in frame.columns if is_timing(name)])
