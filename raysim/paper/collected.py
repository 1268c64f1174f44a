"""The runs of a paper: rows of its table, each one setting over its seeds, and their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from raysim.comparison.runs import compare
from raysim.comparison.settings import group
from raysim.comparison.table import Page
from raysim.crate.building import place_of
from raysim.crate.run_facts import RunFacts
from raysim.errors import ConfigError
from raysim.results.measures import Measure
from raysim.results.result import RunResult, load_result
from raysim.storage.folder_files import without_controls
from raysim.storage.run_record import part_name


@dataclass(frozen=True)
class PaperRun:
    """One run of the paper."""

    row: str
    """The name of its setting: the method, or the options in which it differs from other settings."""
    place: str
    """The name of its folder in the paper's."""
    facts: RunFacts
    result: RunResult

    @property
    def seed(self) -> int:
        """The root of its random streams."""
        return int(self.facts.summary.get("seed") or 0)


@dataclass(frozen=True)
class Paper:
    """All runs of a paper, and what they are measured by."""

    title: str
    measures: Sequence[Measure]
    """Those of the table; the first one is drawn."""
    runs: Sequence[PaperRun]

    @property
    def rows(self) -> dict[str, list[PaperRun]]:
        """Row → its runs, in the order of seeds."""
        found: dict[str, list[PaperRun]] = {}
        for run in self.runs:
            found.setdefault(run.row, []).append(run)
        return found

    @property
    def first(self) -> PaperRun:
        """The run that the instructions repeat."""
        return self.runs[0]

    def page(self) -> Page:
        """Its tables: means, differences from the first row over equal seeds and on equal data, and their tests.

        Raises:
            ConfigError: no run has a value of a measure.
        """
        made = compare([run.result for run in self.runs], [measure.name for measure in self.measures])
        return replace(made.page, title=self.title)


def collect(folders: Sequence[Path], title: str, measures: Sequence[Measure]) -> Paper:
    """The paper of these runs.

    Raises:
        ConfigError: a seed of one setting is there twice.
        ResultsError: a folder is no finished run, or is not what its proof says.
    """
    facts = {folder: RunFacts.of(folder) for folder in folders}
    settings = group([load_result(folder) for folder in folders])
    runs, taken = list[PaperRun](), set[str]()
    for setting in settings:
        if setting.repeated:
            extra = setting.repeated[0].folder
            raise ConfigError(f"{extra}: another run has its settings and its seed. Leave one of the two out.")
        for result in setting.runs:
            own = facts[result.folder]
            method = part_name("method", result.config, result.summary)
            row = setting.label if len(settings) > 1 else without_controls(method)
            place = place_of(f"{_plain(row)}-seed{int(own.summary.get('seed') or 0)}", taken)
            runs.append(PaperRun(row, place, own, result))
    methods = ", ".join(dict.fromkeys(part_name("method", run.result.config, run.result.summary) for run in runs))
    return Paper(without_controls(title or f"{methods} on {runs[0].facts.data}"), measures, runs)


def _plain(text: str) -> str:
    """A text as a part of a folder's name."""
    return re.sub(r"[^\w.+-]+", "-", text)[:60].strip("-.") or "run"
