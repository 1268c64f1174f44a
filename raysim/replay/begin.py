"""The folder of a replay before its first own round: the rounds before it, taken from the run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.config.run_config import differences
from raysim.engine.checkpointing import compared
from raysim.engine.proof import opening
from raysim.errors import ResultsError
from raysim.running.open_run import prepare
from raysim.storage.checkpoint import newest_first, read_manifest
from raysim.storage.origin import Origin, copy_with_facts, kept_checkpoints, write_origin
from raysim.storage.proof_file import PROOF_NAME
from raysim.storage.run_folder import RunFolder
from raysim.verification.differences import explanations, first_difference
from raysim.verification.recompute import begun_at, compute, with_decisions

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.verification.folder_check import FolderCheck

_TAKEN = ("rounds.csv", "clients.csv", "precision.json")
"""Files that a replay takes over with its first rounds."""


def begin(check: FolderCheck, stored: RunConfig, config: RunConfig, first: int) -> Path:
    """Make the folder of a replay.

    Args:
        check: the run's folder, whose files agree with its proof.
        stored: the run's settings, with the place of the computation.
        config: those of the replay.
        first: the round from which on it is computed; those before are taken from the run. Where no checkpoint of the
            round before is kept, the rounds behind the nearest one are computed again, and must come out the same.

    Raises:
        ResultsError: the rounds before come out differently on this machine.
        RaysimError: the replay cannot be done as asked.
    """
    taken, config = first - 1, with_decisions(check, stored, config)
    stored = with_decisions(check, stored, stored)
    there = check.entries[taken].head if taken else ""
    origin = Origin(check.path.resolve().name, check.entries[-1].head, taken, there, tuple(differences(stored, config)))
    if not taken:
        path = prepare(config)
        write_origin(path, origin)
        return path
    with tempfile.TemporaryDirectory(prefix="raysim-replay-") as place:
        before = Path(place) / "before"
        _rounds_before(check, stored, before, taken)
        path = prepare(config)
        try:
            write_origin(path, origin)
            _take_over(before, path, config)
        except BaseException:
            shutil.rmtree(path)
            raise
    return path


def _rounds_before(check: FolderCheck, stored: RunConfig, folder: Path, taken: int) -> None:
    """Make a folder with the run as it was after ``taken`` rounds."""
    kept = {number: path for number, path in kept_checkpoints(check.path).items() if number <= taken}
    start = max(kept, default=0)
    if start < check.taken:
        raise ResultsError(
            f"--from {taken + 1}: the run is a replay itself, and took its first {check.taken} rounds from "
            f"{check.origin}. Replay that one, or from round {check.taken + 1} on."
        )
    if start == taken:
        begun_at(check, stored, folder, kept[taken])
        RunFolder(folder).go_back(taken, read_manifest(kept[taken])["facts"]["tables"])
        return
    compute(check, stored, folder, kept.get(start), taken)
    if found := first_difference(check, folder, range(start + 1, taken + 1)):
        machine = "; ".join(explanations(check.path, stored))
        raise ResultsError(
            f"the rounds before {taken + 1} come out differently here ({found[0]}), so that a replay would differ by "
            f"more than the change{f'. Here is another {machine}' if machine else ''}. Replay where the run was made, "
            "or from round 1"
        )


def _take_over(before: Path, path: Path, config: RunConfig) -> None:
    """Put what a run was after some rounds into the new folder, as if it had been computed with ``config``."""
    for name in _TAKEN:
        if (before / name).is_file():
            shutil.copyfile(before / name, path / name)
    folder = RunFolder(path)
    folder.proof.append(opening(path, config))
    for entry in RunFolder(before).proof.entries[1:]:
        folder.proof.append(entry.content)
    state = newest_first(before / "checkpoints")[0]
    facts = read_manifest(state)["facts"] | {"tables": folder.marks(), "settings": compared(config)}
    assert (path / PROOF_NAME).is_file()
    for place in ("origin", "checkpoints"):
        (path / place).mkdir()
        copy_with_facts(state, path / place, facts)
