"""Computing cells that are not there: each once, whatever the number of processes at work on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from raysim.studies import side_by_side
from raysim.studies.board import Board
from raysim.studies.cell_run import runs_on_ray
from raysim.studies.cells_left import CellsLeft, usable_cores, usual_workers
from raysim.studies.side_by_side import InProcesses, one_after_another
from raysim.studies.study_file import Cell

Where = Literal["processes", "ray"]


def load_ahead(missing: Sequence[Cell], workers: int | None, where: Where) -> None:
    """Let the processes of cells load their packages from now on, if :func:`compute` will have such processes."""
    several = (workers or usable_cores()) > 1
    if several and where == "processes" and not all(map(runs_on_ray, missing)):
        side_by_side.load_ahead()


def compute(
    missing: Sequence[Cell],
    workers: int | None,
    asked: Callable[[], bool],
    cell_ended: Callable[[], None],
    where: Where = "processes",
) -> dict[str, str]:
    """Compute cells; name → reason of each that failed.

    A cell that another process has claimed is left to it, and waited for once there is no other; if that process dies,
    this one takes the cell over. Cells whose clients are on Ray come last, one after another.

    Args:
        workers: how many cells run side by side; 1: all in this process; None: as many as cores may be used, or as the
            cluster has room for.
        asked: whether the user wants to stop.
        cell_ended: is called after every cell.
        where: in processes of this machine, or each as a Ray task.
    """
    own = [cell for cell in missing if not runs_on_ray(cell)]
    failed = (
        _as_ray_tasks(own, workers, asked, cell_ended) if where == "ray" else _here(own, workers, asked, cell_ended)
    )
    return failed | _here([cell for cell in missing if runs_on_ray(cell)], 1, asked, cell_ended)


def _here(
    cells: Sequence[Cell], workers: int | None, asked: Callable[[], bool], cell_ended: Callable[[], None]
) -> dict[str, str]:
    """Compute cells in this process, or side by side in others."""
    if not cells or asked():
        return {}
    count = workers or usual_workers(cell.config() for cell in cells)
    left = CellsLeft(cells, longest_first=count > 1)
    with Board(left, count) as board:
        if count == 1:
            return one_after_another(left, board, asked, cell_ended)
        return InProcesses(left, count, board).run(asked, cell_ended)


def _as_ray_tasks(
    cells: Sequence[Cell], workers: int | None, asked: Callable[[], bool], cell_ended: Callable[[], None]
) -> dict[str, str]:
    """Compute cells as Ray tasks."""
    if not cells or asked():
        return {}
    from raysim.actors.long_tasks import LongTasks
    from raysim.studies.cells_on_ray import CellsOnRay

    left = CellsLeft(cells, longest_first=True)
    with LongTasks(cells[0].config()) as tasks, Board(left, workers or tasks.cores()) as board:
        first = dict[tuple[float, float], str]()
        for cell in cells:
            engine = cell.config().engine
            first.setdefault((engine.threads, engine.gpus_per_client), cell.name)
        for wanted, name in first.items():  # one that can never be computed is said before hours of others
            tasks.check(name, *wanted)
        return CellsOnRay(left, workers, board, tasks, cells[0].path.parent).run(asked, cell_ended)
