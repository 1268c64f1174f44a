"""A study from its file to its table: what is missing is computed, and what is there is kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from raysim import portable
from raysim.cli.interruption import Interruption
from raysim.client_side.device import device_of
from raysim.comparison.outcomes import Values
from raysim.config.answering import Answer
from raysim.config.nearest import did_you_mean
from raysim.config.typed_options import check_typed
from raysim.errors import FAILED, REFUSED, ConfigError, PlacementError, RaysimError
from raysim.storage.folder_files import printable
from raysim.studies import failures, sources
from raysim.studies.checks import check_cell, check_data, check_measures, check_names
from raysim.studies.command import Command, Part
from raysim.studies.computing import compute, load_ahead
from raysim.studies.study_file import Cell, Study, read
from raysim.studies.tables import load_packages, place_of_table, unmeasured, values, write_table
from raysim.units import counted, mean

FIRST = 60.0
"""Seconds after which a table is written before all cells are there."""


class Table:
    """Writes a study's table as cells end: from the second minute on, and for no more than a fiftieth of the time."""

    def __init__(self, study: Study) -> None:
        self._study, self._due = study, time.monotonic() + FIRST

    def cell_ended(self) -> None:
        """A further cell is there, or failed."""
        begun = time.monotonic()
        if begun >= self._due:
            with suppress(RaysimError, OSError):  # said when the last one is written, and no reason to end cells
                write_table(self._study)
            now = time.monotonic()
            self._due = now + 50 * (now - begun)


def carry_out(request: Command) -> Answer:
    """Run the cells that are missing and write the table; its exit code is 1 where a cell failed.

    Raises:
        RaysimError: the study has a mistake.
    """
    with request.refused():
        study, run = _read(request)
    interruption = Interruption()
    try:
        with interruption, interruption.deferred():
            try:
                failed = compute(run, request.workers, interruption.asked, Table(study).cell_ended, request.cells_on)
            except (RaysimError, OSError):
                with suppress(RaysimError, OSError):
                    write_table(study)
                raise
            if run:  # another process may have added cells of other settings, or of another version, meanwhile
                for cell in study.cells():
                    check_cell(cell)
                sources.check(study.cells())
            write_table(study)
    except (RaysimError, OSError) as error:
        return Answer(error=str(error), code=REFUSED if isinstance(error, PlacementError) else FAILED)
    except KeyboardInterrupt:
        said = "interrupted; finished cells are kept, a repeat goes on with the others"
        return Answer(error=said, code=interruption.exit_code)
    every = values(study, dict.fromkeys(measure for _, measure in study.asked_for))
    for name in unmeasured(study, every):
        print(
            f"raysim: no finished cell has a value of {name}; does a method report it, or an option ask for it?",
            file=sys.stderr,
        )
    of_table = {measure.name for measure in study.measures}
    found = {key: seeds for key, seeds in every.items() if key[2] in of_table}
    if failed:
        said = "failed cells, which a repeat runs again:\n" + "\n".join(failures.sentences(failed))
        return Answer(told=_told(study, found), error=said, code=FAILED)
    return Answer(told=_told(study, found))


def _read(request: Command) -> tuple[Study, list[Cell]]:
    """The study, checked, and the cells that are to be run."""
    study = replace(read(request.study, request.trusted), placed=request.placed)
    for note in study.notes:
        print(printable(f"note: {note}"), file=sys.stderr)
    cells = list(study.cells())
    check_names(cells)
    check_typed(request.typed, [cell.config() for cell in cells] if request.typed else [])
    for cell in cells:
        check_cell(cell)
    if not request.table_only:
        sources.check(cells)
    if unknown := [cell.path for cell in cells if cell.path.exists() and not cell.path.with_suffix(".yaml").exists()]:
        print(
            f"note: nothing says with which settings {counted(len(unknown), 'cell')} of the table were made, as the "
            f"file of settings beside the row is missing ({unknown[0].with_suffix('.yaml')} first)",
            file=sys.stderr,
        )
    missing = [cell for cell in cells if not cell.path.exists()]
    asked = _asked(request.part, study, missing)
    if not request.table_only and any(cell.config().engine.portable for cell in asked):
        portable.ensure()
    lost = f", {count} failed" if (count := len(failures.failures(study))) else ""
    print(printable(f"{study.title}: {len(cells) - len(missing)} of {len(cells)} cells are there{lost}"), flush=True)
    place_of_table(study)
    run = [] if request.table_only else asked
    if run:
        check_measures(study)
        if request.placed.get("engine.gpus_per_client") and request.cells_on == "processes":
            device_of(run[0].config().engine)  # else every cell fails
        if request.cells_on == "processes" or run[0].config().engine.address == "local":
            check_data(run, study.choice.measure if study.choice else None)
        load_ahead(run, request.workers, request.cells_on)
        load_packages(study)
    return study, run


def _asked(part: Part, study: Study, cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a part.

    Raises:
        ConfigError: the study has no such row, column or seed.
    """
    known_seeds = sorted({seed for seeds in study.seeds.values() for seed in seeds})
    for option, kinds, named, known in (
        ("row", "rows", part.rows, [*study.rows]),
        ("column", "columns", part.columns, [*study.columns]),
        ("seeds", "seeds", [*map(str, part.seeds)], [*map(str, known_seeds)]),
    ):
        for name in named:
            if name not in known:
                raise ConfigError(
                    f"--{option} {name}: {study.path} has none of this name.{did_you_mean(name, known)} "
                    f"Its {kinds}: {'; '.join(known)}."
                )
    rows, columns, seeds = part.rows or study.rows, part.columns or study.columns, part.seeds or known_seeds
    return [cell for cell in cells if cell.row in rows and cell.column in columns and cell.seed in seeds]


def _told(study: Study, found: Values) -> dict[str, Any]:
    """The study as JSON has it: how far it is, and each measure of each row, seed by seed."""
    cells = list(study.cells())
    failed = [
        {
            "row": one.cell.row,
            "column": one.cell.column,
            "seed": one.cell.seed,
            "round": one.round,
            "reason": one.reason,
        }
        for one in failures.failures(study)
    ]
    rows = [
        {"row": row, "column": column, "measure": measure, "mean": mean([*seeds.values()]), "seeds": seeds}
        for (row, column, measure), seeds in found.items()
    ]
    return {
        "title": study.title,
        "study": str(study.path),
        "table": str(study.table),
        "cells": len(cells),
        "finished": sum(cell.path.exists() for cell in cells),
        "failed": failed,
        "values": rows,
    }
