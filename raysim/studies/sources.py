"""Digests of a user's own code and files that a cell was made with, so that cells of two versions do not mix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.engine.checkpointing import TRACE_DIGEST, compared
from raysim.errors import ConfigError
from raysim.running.own_sources import own_sources, recorded
from raysim.storage.atomic_files import write_atomically
from raysim.storage.untrusted_files import UnreadableFileError, check_types, read_json
from raysim.studies import failures

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.studies.study_file import Cell


def place(cell: Cell) -> Path:
    """The file beside a cell's row; there is none where all that the cell needs comes with raysim."""
    return cell.path.with_suffix(".sources")


def keep(cell: Cell, folder: Path) -> None:
    """Write the digests by which the run in ``folder`` was begun, or of today where it has not begun."""
    found = _present(cell.config())
    found |= {name: digests[0] for name, digests in recorded(folder).items() if name in found}
    if found:
        write_atomically(place(cell), json.dumps(found, indent=2, sort_keys=True).encode())
    else:
        place(cell).unlink(missing_ok=True)


def check(cell: Cell) -> None:
    """ConfigError if a finished or failed cell was made with other code or another trace than there are now."""
    made = next((path for path in (cell.path, failures.place(cell)) if path.exists()), None)
    if made is None or not place(cell).exists():
        return
    now = _present(cell.config())
    try:
        before = read_json(place(cell))
        check_types(before, dict.fromkeys(now, str))
    except UnreadableFileError as error:
        raise ConfigError(f"{place(cell)}: {error}. Remove it, and {made}, to run the cell again") from error
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    if changed:
        raise ConfigError(
            f"{made} was made with another content of {', '.join(changed)}. Remove it to run it again, or take the "
            f"change back; if the change alters no result, remove {place(cell)}"
        )


def _present(config: RunConfig) -> dict[str, str]:
    """Name → SHA-256 of each method, workload and model of a user's own, and of the devices' trace."""
    found = own_sources(config)
    trace = compared(config).get(TRACE_DIGEST)
    return found if trace is None else {**found, f"devices.trace {config.devices.trace}": trace}
