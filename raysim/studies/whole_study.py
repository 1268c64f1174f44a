"""A study from its file to its table: what is missing is computed, and what is there is kept."""

from __future__ import annotations

import sys
import time

from raysim.cli.interruption import Interruption
from raysim.errors import FAILED, FINISHED, REFUSED, RaysimError
from raysim.storage.complaint import complain
from raysim.studies import failures
from raysim.studies.checks import check_cell, check_measures
from raysim.studies.command import Command
from raysim.studies.computing import compute
from raysim.studies.study_file import Study, read
from raysim.studies.tables import finished, place_of_table, unmeasured, write_table


class Table:
    """Writes a study's table as cells end, but spends no more than a twentieth of the time on it."""

    def __init__(self, study: Study) -> None:
        self._study, self._due = study, 0.0

    def cell_ended(self) -> None:
        """A further cell is there, or failed."""
        begun = time.monotonic()
        if begun >= self._due:
            write_table(self._study)
            now = time.monotonic()
            self._due = now + 20 * (now - begun)


def carry_out(request: Command) -> int:
    """Run the cells that are missing and write the table; 0 unless the study has a mistake (2) or a cell failed (1)."""
    try:
        study = read(request.study, request.trusted)
        for note in study.notes:
            print(f"note: {note}", file=sys.stderr)
        cells = list(study.cells())
        for cell in cells:
            check_cell(cell)
        missing = [cell for cell in cells if not cell.path.exists()]
        lost = f", {count} failed" if (count := len(failures.failures(study))) else ""
        print(f"{study.title}: {len(cells) - len(missing)} of {len(cells)} cells are there{lost}", flush=True)
        place_of_table(study)
        if missing and not request.table_only:
            check_measures(study)
    except (RaysimError, OSError) as error:
        complain(error)
        return REFUSED
    interruption = Interruption()
    try:
        with interruption, interruption.deferred():
            run = [] if request.table_only else missing
            failed = compute(run, request.workers, interruption.asked, Table(study).cell_ended, request.cells_on)
            write_table(study)
    except (RaysimError, OSError) as error:
        complain(error)
        return FAILED
    except KeyboardInterrupt:
        print("raysim: interrupted; finished cells are kept, a repeat goes on with the others", file=sys.stderr)
        return interruption.exit_code
    for name in unmeasured(study, finished(study, study.measures)):
        print(
            f"raysim: no finished cell has a value of {name}; does a method report it, or an option ask for it?",
            file=sys.stderr,
        )
    if failed:
        print("raysim: failed cells, which a repeat runs again:\n" + "\n".join(failed), file=sys.stderr)
        return FAILED
    return FINISHED
