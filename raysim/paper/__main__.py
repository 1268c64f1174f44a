"""Write everything that a paper needs of its runs into one folder, from which a stranger can repeat each of them.

``python -m raysim.paper RUNS… --output FOLDER``. Exit codes: 0 written; 2 it cannot be, and why; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from raysim.cli.exit_status import short
from raysim.config.answering import Answer, answered
from raysim.crate.building import Author, crate_of, file_facts
from raysim.crate.rights import add_rights, author_of
from raysim.crate.writing import write
from raysim.errors import ConfigError
from raysim.judge.runs import folders_of
from raysim.paper import checklist, croissant, instructions
from raysim.paper.collected import Paper, collect
from raysim.paper.pictures import write_curves, write_tables
from raysim.remote.address import local_path
from raysim.results.measures import find
from raysim.units import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return answered(_parser(), arguments, _written)


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m raysim.paper",
        description="Table, figure, commands, environment, RO-Crate, Croissant and a reproducibility checklist of "
        "runs, in one folder from which a stranger repeats a run in three commands. No code of the runs is imported.",
        allow_abbrev=False,
    )
    add = found.add_argument
    add("runs", type=Path, nargs="+", metavar="RUNS", help="folders of finished runs, or folders that hold them")
    add("--output", type=local_path, required=True, metavar="FOLDER", help="a new folder")
    add("--title", default="", help="the title of the tables; by default methods and data")
    add("--measure", action="append", default=[], metavar="NAME", help="a measure of the table, accuracy if none")
    add(
        "--source",
        default="",
        metavar="FROM",
        help="where raysim is installed from: a wheel, which is copied, or a URL",
    )
    add_rights(found)
    add("--json", action="store_true", help="print one JSON object")
    return found


def _written(options: argparse.Namespace) -> Answer:
    output: Path = options.output
    if output.exists():
        raise ConfigError(f"--output {output}: it is there already. Take it away, or choose another name.")
    if output.suffix == ".zip":
        raise ConfigError(f"--output {output}: a paper's files are a folder. Leave .zip out, and pack the folder.")
    author = author_of(options)
    croissant.check_installed()
    measures = list(dict.fromkeys(map(find, options.measure or ["accuracy"])))
    paper = collect(folders_of(options.runs), options.title, measures)
    with tempfile.TemporaryDirectory(prefix="raysim-paper-") as place:
        _write_files(paper, Path(place), options)
        _write_crate(paper, Path(place), options, author)
    clients = croissant.check(output / "croissant.json")
    lacking = instructions.unrepeatable(paper.first)
    told = {
        "folder": str(output),
        "title": paper.title,
        "rows": {row: [run.seed for run in own] for row, own in paper.rows.items()},
        "clients in croissant.json": clients,
        "not repeatable": lacking,
    }
    words = lacking or f"repeat a run by the three commands of {short(output / 'README.md')}"
    return Answer(f"{short(output)}: {counted(len(paper.runs), 'run')}; {words}", told)


def _write_files(paper: Paper, folder: Path, options: argparse.Namespace) -> None:
    """All that is made of the runs."""
    write_tables(paper, folder)
    drawn = write_curves(paper, folder)
    source: str = options.source
    if source and "://" not in source:
        if not Path(source).is_file():
            raise ConfigError(f"--source {source}: there is no such file. Allowed: a wheel or an archive, or a URL.")
        shutil.copy(source, folder)
        source = f"./{Path(source).name}"
    texts = {
        "README.md": instructions.readme(paper, source, drawn),
        "commands.md": instructions.commands(paper),
        "requirements.txt": instructions.requirements(paper, source),
        "checklist.md": checklist.page(paper),
        "croissant.json": croissant.described(paper, options.license),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _write_crate(paper: Paper, folder: Path, options: argparse.Namespace, author: Author | None) -> None:
    """The output folder: a crate of the runs and of these files."""
    crate = crate_of(
        [run.facts.folder for run in paper.runs],
        name=paper.title,
        license=options.license,
        author=author,
        places=[run.place for run in paper.runs],
    )
    for path in sorted(folder.iterdir()):
        with path.open("rb", buffering=0) as file:
            crate.add_file(path, path.name, properties=file_facts(path.name, file))
    write(crate, options.output)


if __name__ == "__main__":
    sys.exit(main())
