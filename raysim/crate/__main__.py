"""Write runs as an RO-Crate: their files with digests, and the software, settings and data that they were made with.

``python -m raysim.crate FOLDER [FOLDER ...]``. Exit codes: 0 written; 2 it cannot be, and why; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from raysim.cli.exit_status import short
from raysim.config.answering import Answer, answered
from raysim.crate.building import crate_of
from raysim.crate.rights import add_rights, author_of
from raysim.crate.writing import write
from raysim.remote.address import local_path
from raysim.remote.places import run_folder
from raysim.units import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return answered(_parser(), arguments, _written)


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m raysim.crate",
        description="Runs as an RO-Crate (profile Process Run Crate 0.5), to be published in a repository of research "
        "data. Each run's folder is checked against its proof, copied, and none of its code is imported.",
        allow_abbrev=False,
    )
    add = found.add_argument
    add("folders", type=run_folder, nargs="+", metavar="FOLDER", help="folders of finished runs, or remote addresses")
    add(
        "--output",
        type=local_path,
        help="a new folder, or a new file that ends in .zip; default: NAME.crate.zip here",
    )
    add("--name", default="", help="the crate's title; by default method, data and seed of its run")
    add_rights(found)
    add("--json", action="store_true", help="print one JSON object")
    return found


def _written(options: argparse.Namespace) -> Answer:
    author = author_of(options)
    first: Path = options.folders[0]
    output: Path = options.output or Path(f"{first.resolve().name}.crate.zip")
    crate = crate_of(options.folders, name=options.name, license=options.license, author=author)
    write(crate, output)
    files = crate.get_by_type("File")
    told = {
        "crate": str(output),
        "name": crate.name,
        "files": len(files),
        "bytes": sum(int(file["contentSize"]) for file in files),
    }
    runs = counted(len(options.folders), "run")
    return Answer(f"{short(output)}: {runs}, {counted(len(files), 'file')} with their SHA-256 digests", told)


if __name__ == "__main__":
    sys.exit(main())
