"""Processor seconds of every cell of a study: ``RAYSIM_DATA=/path/to/data python -m benchmarks.cell_seconds STUDY``.

Cells that are missing are computed one after another in this process, as ``python -m raysim.study STUDY --workers 1``
does, and each is timed from its claim to its row: start, data, rounds, evaluations, checkpoints. Modules that all cells
need are loaded before. ``--again SEED`` computes the cells of a seed anew in another folder, those that ``--rows`` has
no time of, and says whether their proofs are those that are kept. Half of the sum is the time on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import raysim.studies.loaded  # noqa: F401 - so that no cell's time is that of imports
from raysim.studies import failures
from raysim.studies.board import Board
from raysim.studies.cell_run import End, proof_of
from raysim.studies.cells_left import CellsLeft
from raysim.studies.side_by_side import one_after_another
from raysim.studies.study_file import Cell, read
from raysim.studies.tables import write_table

Note = Callable[[Cell, float], None]


class Timed(Board):
    """Tells of the processor seconds of every cell that was computed."""

    def __init__(self, left: CellsLeft, note: Note) -> None:
        super().__init__(left, 1, interactive=False)
        self._note, self._begun = note, 0.0

    def begins(self, cell: Cell) -> None:
        super().begins(cell)
        self._begun = time.process_time()

    def ends(self, cell: Cell, end: End) -> None:
        seconds = time.process_time() - self._begun
        super().ends(cell, end)
        if end.kind == "finished":
            self._note(cell, seconds)


def computed(cells: Iterable[Cell], note: Note) -> list[str]:
    """Compute cells in this process; a sentence for each that failed."""
    left = CellsLeft([*cells], longest_first=False)
    with Timed(left, note) as board:
        failed = one_after_another(left, board, lambda: False, lambda: None)
    return failures.sentences(failed)


def again(cells: Iterable[Cell], note: Note) -> list[str]:
    """Compute cells that are there once more; a sentence for each that failed or has another proof."""
    with tempfile.TemporaryDirectory() as folder:
        copies = {Path(folder, *cell.path.parts[-2:]): cell for cell in cells}
        wrong = computed((replace(cell, path=path) for path, cell in copies.items()), note)
        for path, cell in copies.items():
            copy = replace(cell, path=path)
            if path.exists() and proof_of(copy).read_text() != proof_of(cell).read_text():
                wrong.append(f"{cell.name}: its proof is another")
    return wrong


def main() -> int:
    """The command line; 1 if a cell failed, or was not the same."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--rows", type=Path, required=True, help="CSV file that the seconds are added to")
    parser.add_argument("--again", type=int, metavar="SEED", help="compute the cells of this seed anew")
    options = parser.parse_args()
    study = read(options.study)
    found: list[dict[Any, Any]] = pd.read_csv(options.rows).to_dict("records") if options.rows.exists() else []

    def note(cell: Cell, seconds: float) -> None:
        place = {"study": study.name, "column": cell.column, "row": cell.row, "seed": cell.seed}
        found.append({**place, "processor_seconds": round(seconds, 2)})
        pd.DataFrame(found).to_csv(options.rows, index=False)

    if options.again is None:
        wrong = computed((cell for cell in study.cells() if not cell.path.exists()), note)
        write_table(study)
    else:
        timed = {(row["study"], row["column"], row["row"]) for row in found}
        there = (cell for cell in study.cells() if cell.seed == options.again and cell.path.exists())
        wrong = again((cell for cell in there if (study.name, cell.column, cell.row) not in timed), note)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
