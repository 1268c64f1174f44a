"""Computes a random sample of a run's client tasks again and compares them with their digests."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from raysim import portable
from raysim.engine.observer import RunNotes, Silent
from raysim.errors import ResultsError
from raysim.storage.csv_table import cell_text
from raysim.storage.origin import kept_checkpoints
from raysim.units import counted
from raysim.verification.differences import cell_differences
from raysim.verification.recompute import begun_at
from raysim.verification.verdict import Difference

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.verification.folder_check import FolderCheck, Texts


def spot(check: FolderCheck, config: RunConfig, count: int, place: Path, random: Random) -> None:
    """Compute ``count`` random client tasks again; adds to the verdict.

    Only tasks of rounds that follow a kept checkpoint, and of the first round, can be computed by themselves.

    Args:
        check: the run's folder, whose files agree with its proof.
        config: the run's settings.
        count: how many; where fewer can be computed, all of these.
        place: an empty folder to work in.
        random: draws them.

    Raises:
        ResultsError: the proof has no digests of client tasks, or ``count`` is below 1.
        RaysimError: they cannot be computed here; a portable run's, say, on a processor without AVX2.
    """
    if count < 1:
        raise ResultsError(f"--spot: {count} client tasks. Allowed: a whole number ≥ 1.")
    if check.entries[0].content.get("of") != "clients":
        raise ResultsError(
            f"{check.path}: its proof has no digests of client tasks. Make the run with --proof clients, or compute "
            "whole rounds with --rounds or --all"
        )
    if config.engine.portable:
        portable.check()
    starts = {**({} if check.taken else {0: None}), **kept_checkpoints(check.path)}
    rows = check.rows("clients")
    tasks = [(start, int(row["client"])) for start in sorted(starts) for row in rows.get(str(start + 1), [])]
    drawn = random.sample(tasks, min(count, len(tasks)))
    for start in sorted({start for start, _ in drawn}):
        clients = [client for number, client in drawn if number == start]
        expected = {int(row["client"]): row for row in rows[str(start + 1)]}
        found = _tasks(check, config, place / f"from-{start}", starts[start], clients)
        for client in sorted(clients):
            check.verdict.differences += _compared(start + 1, client, expected[client], found.get(client, {}))
    total = sum(map(len, rows.values()))
    check.verdict.checked.append(f"{counted(len(drawn), 'client task')} computed again")
    if len(tasks) < total:
        check.verdict.notes.append(
            f"{len(tasks)} of the run's {total} client tasks can be computed by themselves, those of the first round "
            "and behind kept checkpoints (--engine.checkpoint_every, --engine.keep_checkpoints)"
        )


def _tasks(
    check: FolderCheck, config: RunConfig, folder: Path, start: Path | None, clients: list[int]
) -> Mapping[int, Texts]:
    """The cells of these clients' rows, by client."""
    from raysim.client_side.device import device_of
    from raysim.client_side.worker import Worker, fixed_threads
    from raysim.engine.inline_backend import InlinePool
    from raysim.engine.load_federation import load_federation
    from raysim.engine.rounds import Rounds
    from raysim.storage.run_folder import RunFolder
    from raysim.verification.tasks_again import tasks_again
    from raysim.workloads.parallel_map import Sequential

    config = begun_at(check, config, folder, start)
    federation = load_federation(config, Sequential())
    with fixed_threads(config.engine.threads):
        worker = Worker(config, federation, device_of(config.engine))
        rounds = Rounds(config, worker, InlinePool(worker), RunNotes(RunFolder(folder), Silent()))
        rounds.go_back()
        found = tasks_again(rounds, clients)
    shutil.rmtree(folder)
    return {row["client"]: {name: cell_text(value) for name, value in row.items()} for row in found}


def _compared(number: int, client: int, before: Texts, now: Texts) -> list[Difference]:
    if not now:
        return [Difference("clients.csv", "this client takes no part in it", number, client)]
    same = {name: text for name, text in before.items() if name in now}  # others are of the round as a whole
    return [*cell_differences("clients.csv", number, client, same, now)]
