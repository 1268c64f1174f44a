"""The facts of a finished run that its crate states: settings, times, software, data and results, from its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from raysim.config.config_file import CONFIG_NAME, read_config_file
from raysim.engine.checkpointing import MAY_CHANGE
from raysim.errors import ResultsError
from raysim.monitor import status_file
from raysim.storage.folder_files import is_there
from raysim.storage.proof_file import PROOF_NAME
from raysim.storage.run_record import read_environment, read_run_config, read_summary, run_title
from raysim.verification.folder_check import FolderCheck
from raysim.workloads.data_sets.catalog import BY_NAME, DataSet
from raysim.workloads.naming import data_name

LEFT_OUT = frozenset({"process.json", "status.json", "run.log", "trackers.json", "tensorboard"})
"""Files and folders of a run that tell of the machine and of other programs, not of the result, beside hidden ones."""
_TOLD = frozenset({"seed", "clients", "model_values"})
"""Numbers of a summary that are no results."""


@dataclass(frozen=True)
class RunFacts:
    """A finished run, whose files are what its proof says.

    Args:
        folder: the run's.
        head: head of its proof; empty of a run without one.
        settings: all that results depend on, path → value.
    """

    folder: Path
    head: str
    settings: Mapping[str, Any]
    config: Mapping[str, Any]
    """The sections of its config.yaml."""
    summary: Mapping[str, Any]
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> RunFacts:
        """The facts of the run in a folder, which may be anybody's: nothing that it names is imported.

        Raises:
            ResultsError: it is no run's folder, its run has not ended, or its files are not what its proof says.
            ConfigError: its config.yaml cannot be read as one.
        """
        config, summary = read_run_config(folder), read_summary(folder)
        if not summary:
            raise ResultsError(f"{folder}: the run has not ended. Go on with it first: --resume {folder}")
        head, settings = "", read_config_file(folder / CONFIG_NAME, run_folder=True)
        if is_there(folder / PROOF_NAME) or summary.get("proof"):
            check = FolderCheck.whole(folder)
            open_there = {name: value for name, value in settings.items() if name in MAY_CHANGE}
            head, settings = check.verdict.head, {**check.settings, **open_there}
        return cls(folder, head, settings, config, summary, read_environment(folder))

    @property
    def title(self) -> str:
        """Method, data and seed."""
        return f"{run_title(self.config, self.summary)}, seed {self.summary.get('seed', 0)}"

    @property
    def started(self) -> str:
        """When the run's folder was made, in ISO 8601; empty where it does not say."""
        return str(self.environment.get("date", ""))

    @property
    def ended(self) -> str:
        """When the run came to its end, in ISO 8601, to the second."""
        made = (self.folder / "summary.json").stat().st_mtime
        try:
            ended = datetime.fromtimestamp(status_file.read(self.folder).get("updated") or made, UTC)
        except (OverflowError, ValueError, OSError):  # no moment that a calendar has
            ended = datetime.fromtimestamp(made, UTC)
        return ended.isoformat(timespec="seconds")

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Versions of what computed it, by name: Python, and packages; raysim's with its commit, as PEP 440 has it."""
        found = {name: str(version) for name, version in self.environment.get("versions", {}).items() if version}
        if commit := self.environment.get("commit"):
            changed = ".changed" if self.environment.get("dirty") else ""
            found["raysim"] = f"{found.get('raysim', '0')}+g{commit}{changed}"
        return {"Python": str(self.environment.get("python", "")), **found}

    @property
    def workload(self) -> str:
        """The name of its workload, which a file of one's own does not change."""
        section = self.config.get("workload")
        return str(section.get("name") if isinstance(section, Mapping) else section)

    @property
    def data(self) -> str:
        """The name of its data."""
        section = self.config.get("workload")
        return data_name(section) if isinstance(section, Mapping) else str(section)

    @property
    def published(self) -> DataSet | None:
        """The published data set whose workload it ran; None for own files and data, whatever they are called."""
        return BY_NAME.get(self.workload)

    @property
    def data_digests(self) -> Mapping[str, str]:
        """Digests of its data: of each file as it is published ("sha256:…"), or of all data that was given in Python.

        Those of published files are checked where they are fetched, and not against what the run has read.
        """
        if given := self.settings.get("workload.digest"):
            return {"data": f"sha256:{given}"}
        section = self.config.get("workload")
        if self.published is None or (isinstance(section, Mapping) and section.get("path")):
            return {}  # a path may lead to other files than were published
        return {file.name: file.digest for file in self.published.files}

    @property
    def results(self) -> Mapping[str, float]:
        """The numbers of its summary."""
        numbers = {name: value for name, value in self.summary.items() if isinstance(value, int | float)}
        return {name: value for name, value in numbers.items() if not isinstance(value, bool) and name not in _TOLD}

    def files(self) -> Iterator[Path]:
        """The files that stand for the run, in the order of their names, relative to its folder.

        Raises:
            ResultsError: a name is not UTF-8, so that no list of files can have it.
        """
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder)
            if not str(name).isprintable():  # nor a line end, which would end a line of the list
                raise ResultsError(f"{self.folder}: {str(name)!a} is no name for a file of a crate. Rename it.")
            hidden = any(part.startswith(".") for part in name.parts)
            if path.is_file() and not hidden and name.parts[0] not in LEFT_OUT and path.suffix != ".partial":
                yield name


def as_text(value: object) -> str:
    """A setting's value as a command line has it: numbers and words plain, lists as JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
