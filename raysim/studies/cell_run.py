"""One cell of a study, from its claim to its row.

A run under way has its folder beside the place of the row, ``.ROW-seedN.run``, so that a cell that was interrupted or
killed goes on from its last checkpoint. The folder goes when the row is there, unless another cell goes on with it, or
when the run failed.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from raysim.client_side.device import cap_memory
from raysim.config.run_config import RunConfig, to_yaml
from raysim.errors import DiskFullError, RaysimError, ResultsError, reason_of
from raysim.leaving import staying
from raysim.storage.atomic_files import write_atomically
from raysim.storage.claims import claimed
from raysim.storage.run_folder import is_run
from raysim.studies import failures, sources

if TYPE_CHECKING:
    from raysim.driver.outcome import Outcome
    from raysim.engine.observer import Observer
    from raysim.studies.study_file import Cell

BACKEND = "engine.backend"


@dataclass(frozen=True)
class End:
    """The end of an attempt at a cell.

    Its row is made, or was there; another process has it; its process died, and it is to go on; it failed, or stopped.
    """

    kind: Literal["finished", "there", "elsewhere", "died", "failed", "stopped"]
    reason: str = ""
    """Why it failed, or why one that is finished could not go on and was begun again; empty otherwise."""


def runs_on_ray(cell: Cell) -> bool:
    """Whether the study file asks for a run on Ray by name; cells are in-process runs otherwise."""
    return next((layer[BACKEND] for layer in reversed(cell.layers) if BACKEND in layer), "inline") == "ray"


def folder_of(cell: Cell) -> Path:
    """The folder of the cell's run while it is under way."""
    return cell.folder or cell.path.with_name(f".{cell.path.stem}.run")


def proof_of(cell: Cell) -> Path:
    """The file that keeps the head of the proof of the cell's run."""
    return cell.path.with_suffix(".proof")


def config_of(cell: Cell) -> RunConfig:
    """The settings of the cell's run with those that change no result: where it happens, and what it leaves."""
    config = cell.config()
    engine = config.engine if runs_on_ray(cell) else replace(config.engine, backend="inline")
    return replace(config, engine=engine, output=str(folder_of(cell)), pictures=False)


def attempt(cell: Cell, failed_at: int, observer: Observer, stopping: Callable[[], bool]) -> End:
    """Run a cell unless another process has claimed it, has made it, or has failed in it.

    Args:
        failed_at: when the row of its failure was written that is to be tried again; 0: there was none.
        stopping: whether the run is to stop after the round that it is in.
    """
    with claimed(cell.path) as mine:
        if not mine:
            return End("elsewhere")
        if cell.path.exists():
            return End("there")
        if failures.made_at(cell) != failed_at:
            return End("failed", "it failed in another process")
        return run_cell(cell, observer, stopping)


def run_cell(cell: Cell, observer: Observer, stopping: Callable[[], bool]) -> End:
    """Run a cell, or go on with it, and keep its rounds table without timings; the file appears only when it is whole.

    A run that ends with an error leaves the row of its failure instead, which a later success takes away, but for one
    that found no room on the disk; one that was to stop by then counts as stopped, and shows at the next attempt
    whether the error was its own.
    """
    again, full = "", False
    try:
        with staying():
            outcome, again = _run(cell, observer, stopping)
        status, full = outcome.status, outcome.disk_full
        reason = "\n".join(filter(None, (outcome.message, outcome.traceback)))
    except RaysimError as error:
        status, reason, full = "failed", str(error), isinstance(error, DiskFullError)
    except Exception as error:
        status, reason = "failed", f"{reason_of(error)}\n{traceback.format_exc()}"
    if status == "stopped" or (status == "failed" and stopping()):  # a library may make an error of a signal
        return End("stopped")
    if status == "failed":
        if not full:  # else it goes on where it was once there is room: the disk's failure is not the method's
            keep_failure(cell, reason)
            shutil.rmtree(folder_of(cell), ignore_errors=True)
        return End("failed", reason)
    _keep_row(cell)
    return End("finished", again)


def keep_failure(cell: Cell, reason: str) -> None:
    """Write the row of a cell's failure, with the settings that it was made with."""
    _keep_settings(cell)
    failures.keep(cell, folder_of(cell), reason)


def _run(cell: Cell, observer: Observer, stopping: Callable[[], bool]) -> tuple[Outcome, str]:
    """The end of the cell's run; and why one that had begun was begun again, empty if it was not."""
    from raysim.running.open_run import prepare
    from raysim.running.own_sources import changes_since
    from raysim.running.simulation import execute

    config, folder, again = config_of(cell), folder_of(cell), ""
    if not runs_on_ray(cell):  # cells side by side may share a GPU
        cap_memory(config.engine)
    if is_run(folder):
        try:
            prepare(config, resume=folder)
            if changes := changes_since(config, folder):  # rounds of two methods in one table
                raise ResultsError(changes[0])
            outcome = execute(config, folder, observer, resumed=True, stopping=stopping, keep_ray=True)
            if outcome.resumable:
                return outcome, ""
            again = outcome.message
        except RaysimError as error:  # of other settings, say
            if stopping() or isinstance(error, DiskFullError):  # no reason to leave its rounds
                raise
            again = str(error)
        observer.note(f"{cell.name} cannot go on and starts again from round 1: {again}")
    shutil.rmtree(folder, ignore_errors=True)
    prepare(config)
    return execute(config, folder, observer, stopping=stopping, keep_ray=True), again


def _keep_row(cell: Cell) -> None:
    from raysim.results.result import kept_rows, load_result

    result = load_result(folder_of(cell))
    rows = kept_rows(result.rounds)
    _keep_settings(cell)
    proof = proof_of(cell)
    if head := result.summary.get("proof"):
        write_atomically(proof, f"{head}\n".encode())
    else:
        proof.unlink(missing_ok=True)
    write_atomically(cell.path, rows.encode())
    failures.place(cell).unlink(missing_ok=True)
    if cell.folder is None:
        shutil.rmtree(folder_of(cell), ignore_errors=True)


def _keep_settings(cell: Cell) -> None:
    """Write a cell's settings, and digests of what they name, beside its row, so that a later change is noticed."""
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(cell.path.with_suffix(".yaml"), to_yaml(cell.config()).encode())
    sources.keep(cell, folder_of(cell))
