"""A run in the store of another tool (TensorBoard, MLflow, W&B, trackio): its settings, its rounds, and how it ended.

Each tool is a subclass of :class:`Tracker` in :mod:`raysim.monitor.trackers`. A round is written once: a resumed run is
written anew from its table, in the place of what the tool had of it, and a round that a new driver does again has the
same bits and is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from raysim.config.run_config import flatten
from raysim.engine.observer import Silent
from raysim.monitor import status_file
from raysim.storage.atomic_files import write_atomically
from raysim.storage.run_folder import RunFolder
from raysim.storage.run_record import read_facts, read_run_config, read_summary
from raysim.storage.untrusted_files import check_types

IDENTITIES = "trackers.json"
"""File of a run's folder: tracker → the name under which its tool has the run."""


@dataclass(frozen=True)
class Tracked:
    """A run as a tool files it."""

    experiment: str
    """Its ``engine.experiment``, else the name of the folder that holds the run's."""
    name: str
    """The name of its folder."""
    tags: Mapping[str, str]
    """Method, workload, seed and folder."""
    settings: Mapping[str, Any]
    """All of its options, path → value."""


class Tracker(Silent):
    """An observer that hands a run to another tool, round by round; made with the run's folder.

    A subclass writes ``begin``, ``log`` and ``end``; its ``package`` is imported in them.
    """

    package: ClassVar[str]
    """Name by which the tool is installed and imported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = 0

    def place(self, tool: str) -> Path:
        """The folder for a tool's files: in the run's own; for a cell of a study, whose folder goes, beside it."""
        name = _name_of(self.path)
        return self.path / tool if name == self.path.name else self.path.parent / tool / name

    def begin(self, run: Tracked, earlier: str) -> str:
        """Open the run in the tool's store.

        Args:
            earlier: the identity of what the store may have of the run's rounds before a stop, which goes; or empty.

        Returns:
            Its identity there: letters, digits and hyphens, or empty.
        """
        raise NotImplementedError

    def log(self, number: int, values: Mapping[str, float]) -> None:
        """Keep a round's numbers, column → value; what was not measured is not among them."""
        raise NotImplementedError

    def end(self, status: str, proof: str) -> None:
        """Close the run, which is finished, stopped or failed.

        Args:
            proof: the head of its chain of digests; empty unless it is finished, and has one.
        """
        raise NotImplementedError

    def round_finished(self, row: Mapping[str, Any]) -> None:
        """Keep the round, and those before it that this process has not seen."""
        number = int(row["round"])
        if number <= self._last:
            return
        if not self._last:
            self._begin()
            rounds = RunFolder.open(self.path).rounds()
            for earlier in rounds[rounds["round"] < number].to_dict("records") if len(rounds) else []:
                self.log(int(earlier["round"]), _measured({str(name): value for name, value in earlier.items()}))
        self.log(number, _measured(row))
        self._last = number

    def close(self) -> None:
        """The run has ended."""
        if self._last:
            status = str(status_file.read(self.path).get("state", "stopped"))
            self.end(status, read_summary(self.path).get("proof", "") if status == "finished" else "")

    def _begin(self) -> None:
        own = type(self).__module__.rpartition(".")[2]
        known = read_facts(self.path, IDENTITIES, partial(check_types, expected={own: str}))
        earlier = known.get(own, "")
        if not re.fullmatch(r"[\w-]*", earlier):  # a run's folder may come from anyone
            earlier = ""
        identity = self.begin(_tracked(self.path), earlier)
        if identity:
            write_atomically(self.path / IDENTITIES, json.dumps(known | {own: identity}).encode())


def _tracked(path: Path) -> Tracked:
    plain = read_run_config(path)
    settings = flatten(plain)
    tags = {
        "method": str(settings["method.name"]),
        "workload": str(settings["workload.name"]),
        "seed": str(settings["seed"]),
        "folder": str(path),
    }
    return Tracked(str(settings.get("engine.experiment") or path.parent.name), _name_of(path), tags, settings)


def _name_of(path: Path) -> str:
    """The name of a run's folder; a cell of a study has a hidden one while it goes on, ``.NAME.run``."""
    cell = re.fullmatch(r"\.(.+)\.run", path.name)
    return cell[1] if cell else path.name


def _measured(row: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in row.items()
        if name != "round" and isinstance(value, int | float) and not math.isnan(value)
    }
