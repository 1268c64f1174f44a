"""Digests of a user's own code and files that a cell was made with, so that cells of two versions do not mix."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.engine.checkpointing import TRACE_DIGEST
from raysim.errors import ConfigError, DamagedError, ResultsError
from raysim.running.own_sources import own_sources, recorded
from raysim.storage.atomic_files import write_atomically
from raysim.storage.proof_file import PROOF_NAME, read_proof
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json
from raysim.units import counted
from raysim.virtual_time.devices import traces

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.studies.study_file import Cell


def place(cell: Cell) -> Path:
    """The file beside a cell's row; there is none where all that the cell needs comes with raysim."""
    return cell.path.with_suffix(".sources")


def keep(cell: Cell, folder: Path) -> None:
    """Write the digests by which the run in ``folder`` was begun, or of today where it has not begun."""
    config = cell.config()
    found = _present(config)
    found |= {name: digest for name, digest in _begun(config, folder).items() if name in found}
    if found:
        write_atomically(place(cell), json.dumps(found, indent=2, sort_keys=True).encode())
    else:
        place(cell).unlink(missing_ok=True)


def check(cells: Iterable[Cell]) -> None:
    """ConfigError if finished cells were made with other code or another trace than there are now.

    A failed one is computed anew, and mixes nothing.
    """
    changed: dict[Path, list[str]] = {}
    for cell in cells:
        try:  # of all cells, as soon after their code was imported as can be
            now = _present(cell.config())
        except ConfigError:  # values that no run can have together, which is told where it would be computed
            continue
        if cell.path.exists() and place(cell).exists():
            try:
                before = read_json(place(cell))
                check_types(before, dict.fromkeys(now, str))
            except UnreadableFileError as error:
                raise ConfigError(f"{place(cell)}: {error}. Remove it, and {cell.path}, to run it again") from error
            if names := [name for name, digest in now.items() if before.get(name, digest) != digest]:
                changed[cell.path] = names
    if changed:
        names = [*dict.fromkeys(name for found in changed.values() for name in found)]
        raise ConfigError(
            f"{counted(len(changed), 'finished cell')} had another content of {', '.join(names)}: "
            f"{', '.join(map(str, changed))}. Remove these files to run them again, or take the change back; if it "
            "alters no result, remove the files of the same names that end in .sources"
        )


def _present(config: RunConfig) -> dict[str, str]:
    """Name → SHA-256 of each method, workload and model of a user's own, and of the devices' trace."""
    found = own_sources(config)
    if digest := traces.digest(config.devices):
        found[_trace(config)] = digest
    return found


def _begun(config: RunConfig, folder: Path) -> dict[str, str]:
    """The digests that the run recorded at its begin, as far as it did."""
    found = {name: digests[0] for name, digests in recorded(folder).items()}
    with suppress(ResultsError, DamagedError):
        for first in read_proof(folder / PROOF_NAME, 1, torn=True):
            if digest := first.content.get("settings", {}).get(TRACE_DIGEST):
                found[_trace(config)] = digest
    return found


def _trace(config: RunConfig) -> str:
    return f"devices.trace {config.devices.trace}"
