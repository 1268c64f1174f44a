"""Writes a crate as a file or a folder, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from raysim.errors import ConfigError
from raysim.storage.atomic_files import writing

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
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=output.parent, prefix=".crate-", suffix=".partial") as place:
            partial = Path(place) / output.name
            if output.suffix == ".zip":
                crate.write_zip(partial)
            else:
                crate.write(partial)
            partial.rename(output)
