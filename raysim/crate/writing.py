"""Writes a crate as a file or a folder, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from raysim.errors import ConfigError
from raysim.storage.atomic_files import writing
from raysim.workloads.files.cache_files import whole_folder

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate


def write(crate: ROCrate, output: Path) -> None:
    """Write a crate as a file, if its name ends in ``.zip``, or else as a folder; it appears only when it is whole.

    Raises:
        ConfigError: the file or folder is there already.
        ResultsError: it cannot be written, to a disk that is full, say.
    """
    if output.exists():
        raise ConfigError(f"--output {output}: it is there already. Take it away, or choose another name.")
    with writing(output), whole_folder(output) as partial:
        if output.suffix == ".zip":
            crate.write_zip(partial)
        else:
            crate.write(partial)
