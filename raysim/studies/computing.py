"""Computing cells that are not there: each once, whatever the number of processes at work on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from raysim.studies.board import Board
from raysim.studies.cell_run import on_ray
from raysim.studies.cells_left import CellsLeft, usual_workers
from raysim.studies.side_by_side import SideBySide, one_after_another
from raysim.studies.study_file import Cell


def compute(
    missing: Sequence[Cell], workers: int | None, asked: Callable[[], bool], cell_ended: Callable[[], None]
) -> list[str]:
    """Compute cells; a sentence for each that failed.

    A cell that another process has claimed is left to it, and waited for once there is no other; if that process dies,
    this one takes the cell over. Cells on Ray come last, one after another.

    Args:
        workers: how many cells run side by side; 1: all in this process; None: as many as cores may be used.
        asked: whether the user wants to stop.
        cell_ended: is called after every cell.
    """
    inline = [cell for cell in missing if not on_ray(cell)]
    failed = list[str]()
    for cells, count in ((inline, workers), ([cell for cell in missing if on_ray(cell)], 1)):
        if not cells or asked():
            continue
        count = count or usual_workers(cell.config() for cell in cells)
        left = CellsLeft(cells, longest_first=count > 1)
        with Board(left, count) as board:
            if count == 1:
                failed += one_after_another(left, board, asked, cell_ended)
            else:
                failed += SideBySide(left, count, board).run(asked, cell_ended)
    return failed
