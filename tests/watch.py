"""An observer that remembers what it was told, and runs that are stopped on the way."""

from __future__ import annotations

from pathlib import Path

from raysim.config.run_config import RunConfig
from raysim.engine.observer import Silent
from raysim.running.open_run import prepare
from raysim.running.simulation import execute


class Watch(Silent):
    """Remembers notes (faults are among them), faults and the round that began last."""

    def __init__(self) -> None:
        self.round = 0
        self.notes: list[str] = []
        self.faults: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def fault(self, text: str) -> None:
        self.faults.append(text)
        self.note(text)

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.round = round


def stopped(config: RunConfig, rounds: int) -> Path:
    """The folder of a run that was stopped after some rounds."""
    folder, watch = prepare(config), Watch()
    assert execute(config, folder, watch, stopping=lambda: watch.round > rounds).status == "stopped"
    return folder
