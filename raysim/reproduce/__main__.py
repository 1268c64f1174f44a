"""Make a table of one of the papers again, and say of each of its differences whether it is confirmed.

``python -m raysim.reproduce`` lists the tables. ``python -m raysim.reproduce fedrad-joins --scale small`` takes some
minutes and needs no data set; ``--scale kept`` repeats what the project's page shows, bit by bit, and compares the
proofs of its runs; ``--scale paper`` is the published protocol, for machines with GPUs. The folder that it leaves is a
study's: an interrupted command goes on where it stopped, and ``python -m raysim.study FOLDER/study.yaml`` is the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from raysim.comparison import claims, markdown
from raysim.config.answering import Answer, answered
from raysim.errors import FINISHED
from raysim.remote.address import local_path
from raysim.reproduce.catalog import Reproduction, Scale, reproduction, reproductions
from raysim.reproduce.kept_proofs import Agreement, agreement
from raysim.studies.command import FILE, Command, add_parts, count_of, keep_request, not_there, part_of
from raysim.studies.placement import placement
from raysim.studies.study_file import Study, read
from raysim.studies.tables import outcomes
from raysim.studies.whole_study import carry_out


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 unless the request has a mistake (2) or a cell failed (1)."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.reproduce", description=(__doc__ or "").split("\n\n")[0], allow_abbrev=False
    )
    add = parser.add_argument
    add("table", nargs="?", help="the table; without it all of them are listed")
    add("--scale", choices=get_args(Scale), default="small", help="small by default")
    add("--output", type=local_path, metavar="FOLDER", help="the study's folder; reproduced/TABLE-SCALE by default")
    add_parts(parser, "run the missing cells of these seeds alone, 0-4 or 0,2,5; the table has all")
    add("--workers", type=partial(count_of, "workers"), metavar="N", help="cells side by side; one a core by default")
    add("--gpus-per-client", metavar="1/k", help="the part of a GPU that a cell has; 0, none, by default")
    add("--json", action="store_true", help="say it as one JSON object")
    return answered(parser, argv, _answer, "interrupted; the same command goes on")


def _answer(options: argparse.Namespace) -> Answer:
    if options.table is None:
        return _listing()
    found = reproduction(options.table)
    folder = options.output or Path("reproduced") / f"{found.name}-{options.scale}"
    path = folder / FILE
    gpus = options.gpus_per_client
    placed = {} if gpus is None else placement([f"--gpus-per-client={gpus}"], str(path))
    written = not_there(path)
    keep_request(path, found.at(options.scale), f"{path} is another study; give another --output.")
    workers, part = options.workers, part_of(options)
    request = Command(path, (folder,), table_only=False, workers=workers, written=written, placed=placed, part=part)
    made = carry_out(request)
    if made.code != FINISHED:
        return made
    study = read(path, (folder,))
    return _told(found, study, agreement(found, study) if options.scale == "kept" else None)


def _listing() -> Answer:
    tables = reproductions()
    width = max(map(len, tables))
    lines = [f"{name:{width}} {one.table}" for name, one in tables.items()]
    advice = "python -m raysim.reproduce TABLE --scale small|kept|paper"
    return Answer("\n".join([*lines, "", advice]), {name: one.table for name, one in tables.items()})


def _told(found: Reproduction, study: Study, proofs: Agreement | None) -> Answer:
    """The paper's differences with their verdicts, and whether the proofs are those that were kept."""
    claimed = claims.table(outcomes(study, {}))
    words = [markdown.table(claimed) or f"{found.table}: the paper prints no two numbers that could be compared here."]
    words += [proofs.text] if proofs else []
    words.append(f"all tables: {study.table}")
    told = {"table": found.table, "folder": str(study.path.parent), "differences": list(claimed.records)}
    return Answer("\n\n".join(words), told | ({"proofs": proofs.told} if proofs else {}))


if __name__ == "__main__":
    sys.exit(main())
