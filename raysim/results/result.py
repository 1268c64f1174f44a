"""Results of a run in its folder: tables as pandas frames, trained models, and the cost of an accuracy.

Costs are rounds, traffic, virtual time and energy up to the round that first reached the accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.columns import is_timing
from raysim.storage.run_folder import RunFolder
from raysim.storage.run_record import read_run_config, read_summary

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame

    from raysim.config.run_config import RunConfig

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Accuracies that a run's summary tells the costs of, where it reached them."""


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


def load_result(path: Path) -> RunResult:
    """Read a run folder, finished or not.

    Raises:
        ResultsError: it is none, or its config or summary cannot be read.
    """
    folder = RunFolder.open(path)
    return RunResult(path, read_run_config(path), folder.rounds(), folder.clients(), read_summary(path))


def comparable(frame: DataFrame) -> DataFrame:
    """The frame without the columns that hold times and rates: what two runs of one config must share bit for bit."""
    return frame.drop(columns=[name for name in frame.columns if is_timing(name)])


def running_costs(rounds: DataFrame) -> DataFrame:
    """The cost of all rounds up to each one, from a run's table of rounds.

    Returns:
        ``round``, ``bytes`` (sent and received), and for a run in virtual time also ``virtual_seconds`` (since its
        start) and ``joules``; what the table lacks is left out.
    """
    costs = rounds[["round"]]
    if {"bytes_down", "bytes_up"} <= set(rounds):
        costs = costs.assign(bytes=(rounds["bytes_down"] + rounds["bytes_up"]).cumsum())
    if "virtual_seconds" in rounds:
        costs = costs.assign(virtual_seconds=rounds["virtual_seconds"])
    return costs.assign(joules=rounds["joules"].cumsum()) if "joules" in rounds else costs


def cost_of(rounds: DataFrame, accuracy: float) -> dict[str, Any] | None:
    """The costs up to the first round whose test accuracy is at least ``accuracy``; None if no round's is.

    Args:
        rounds: a run's table of rounds.
        accuracy: a share from 0 to 1.
    """
    if "accuracy" not in rounds:
        return None
    reached = np.flatnonzero(rounds["accuracy"].to_numpy(dtype=float) >= accuracy)  # NaN where it was not evaluated
    if not len(reached):
        return None
    return {str(name): values.iloc[int(reached[0])].item() for name, values in running_costs(rounds).items()}


def costs_to_accuracies(rounds: DataFrame) -> list[dict[str, Any]]:
    """A row for each of :data:`LEVELS` that the run reached."""
    found = ((level, cost_of(rounds, level)) for level in LEVELS)
    return [{"accuracy": level, **cost} for level, cost in found if cost is not None]
