"""Cells of a study side by side, beside their single times: ``python -m benchmarks.study_cells [--rows FILE]``.

60 cells (2 methods × 5 rates × 6 seeds) of digits, computed three ways:

- *alone*: one process computes them one after another, behind one that is not counted and loads what all of them need.
  The ideal time is the sum of their times, divided by the number of cores that may be used.
- *plain*: as many processes as cores, each with its share of the seeds in a bare loop; they share no queue and no
  folder. From their start to the end of the last one it is what the machine allows, as cores at work share caches,
  memory and clock, and may be two threads of one core.
- *study*: the whole command that computes them side by side, its start, its processes and its tables included.

Plain processes and studies take turns (A B, B A). Processor time is that of all their processes. The rows of all must
be the same bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from raysim.comparison import csv_files
from raysim.engine.observer import Silent
from raysim.studies import cell_run, command, study_file

GRID = ("--grid", "method=fedavg,fedprox", "--grid", "learning_rate=0.01,0.02,0.05,0.1,0.2", "--seeds", "0-5")
RUN = ("--workload", "digits", "--model", "mlp", "--clients", "10")
CELLS = 60
SUBREAPER = 36
"""``PR_SET_CHILD_SUBREAPER`` of prctl(2): processes whose parents have ended become this one's."""
Row = dict[str, str | int | float]


def words(folder: Path, rounds: int) -> list[str]:
    """The study's command line."""
    return [*GRID, *RUN, "--rounds", str(rounds), "--output", str(folder)]


def share(folder: Path, rounds: int, part: int, parts: int) -> list[float]:
    """Compute one of equal parts of the cells, one after another in this process; seconds of each.

    Where it is the only part, behind its first cell once more, which is not counted.
    """
    if parts == 1:
        _computed(folder.with_name(f"{folder.name}-uncounted"), rounds, 0, CELLS)
    return _computed(folder, rounds, part, parts)


def _computed(folder: Path, rounds: int, part: int, parts: int) -> list[float]:
    path = command.read(words(folder, rounds), "").study
    cells, seconds = [*study_file.read(path, (folder,)).cells()], list[float]()
    for cell in cells[len(cells) * part // parts : len(cells) * (part + 1) // parts]:
        begun = time.monotonic()
        cell_run.run_cell(cell, Silent(), lambda: False)
        seconds.append(time.monotonic() - begun)
    return seconds


def timed(lines: list[list[str]], *, orphans: bool = False) -> tuple[float, float, list[str]]:
    """Run commands at a time: seconds to the end of the last, processor seconds of all processes, what they printed.

    Args:
        orphans: this process has no other children and is given orphans: wait for those, too, so that they count.
    """
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    running = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in lines]
    said = [process.communicate()[0] for process in running]
    seconds = time.monotonic() - begun
    if any(process.returncode for process in running):
        raise SystemExit(f"a command failed: {lines}")
    with suppress(ChildProcessError):
        while orphans:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def in_shares(folder: Path, rounds: int, parts: int) -> Row:
    """The row of plain processes, one if ``parts`` is 1."""
    line = [sys.executable, "-m", "benchmarks.study_cells", "--rounds", str(rounds)]
    lines = [[*line, "--share", f"{part}/{parts}", "--output", str(folder / str(part))] for part in range(parts)]
    seconds, processor, said = timed(lines, orphans=True)
    cells = [one for own in said for one in json.loads(own)]
    return _row("plain" if parts > 1 else "alone", seconds, processor) | {
        "seconds_of_cells": round(sum(cells), 2),
        "seconds_of_cell": round(median(cells), 3),
    }


def side_by_side(folder: Path, rounds: int, workers: int) -> Row:
    """The row of the whole command."""
    line = [sys.executable, "-m", "raysim.study", *words(folder, rounds), "--workers", str(workers)]
    seconds, processor, _ = timed([line], orphans=True)
    return _row("study", seconds, processor)


def _row(way: str, seconds: float, processor: float) -> Row:
    return {"way": way, "seconds": round(seconds, 2), "processor_seconds": round(processor, 2)}


def kept(folder: Path) -> dict[str, bytes]:
    """The rows of all cells."""
    return {path.name: path.read_bytes() for path in folder.rglob("results/*.csv")}


def measured(place: Path, rounds: int, workers: int, turns: int) -> tuple[list[Row], bool]:
    """A row for each time that the cells were computed, and whether all left the same bytes."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    rows = [in_shares(place / "alone", rounds, 1)]
    found = [kept(place / "alone" / "0")]
    for turn in range(turns):
        for way in ("plain", "study") if turn % 2 == 0 else ("study", "plain"):
            folder = place / f"{way}-{turn}"
            rows.append(in_shares(folder, rounds, workers) if way == "plain" else side_by_side(folder, rounds, workers))
            found.append(kept(folder))
    same = all(own == found[0] for own in found) and len(found[0]) == CELLS
    return [{"rounds": rounds, "workers": workers} | row for row in rows], same


def sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """The comparison in words: medians over turns."""

    def of(way: str, column: str) -> float:
        return median(float(row[column]) for row in rows if row["way"] == way)

    workers = int(rows[0]["workers"])
    ideal, plain, study = of("alone", "seconds_of_cells") / workers, of("plain", "seconds"), of("study", "seconds")
    slower = of("plain", "seconds_of_cell") / of("alone", "seconds_of_cell")
    return (
        f"{CELLS} cells of {rows[0]['rounds']} rounds by {workers} workers: {study:.1f} s, {study / plain:.2f} of the "
        f"{plain:.1f} s of {workers} plain processes and {study / ideal:.2f} of the ideal {ideal:.1f} s; a cell beside "
        f"another takes {slower:.2f} times as long as alone"
    )


def main() -> int:
    """The command line; 1 if the rows differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="rounds of every cell")
    parser.add_argument("--turns", type=int, default=1, help="turns of plain processes and studies")
    parser.add_argument("--rows", type=Path, help="CSV file that the rows are written to")
    parser.add_argument("--share", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.share:
        part, parts = map(int, options.share.split("/"))
        print(json.dumps(share(options.output, options.rounds, part, parts)))
        return 0
    with tempfile.TemporaryDirectory() as place:
        rows, same = measured(Path(place), options.rounds, len(os.sched_getaffinity(0)), options.turns)
    print(csv_files.text(rows) + sentence(rows))
    print("the rows are the same bytes" if same else "THE ROWS DIFFER")
    if same and options.rows is not None:
        options.rows.write_text(csv_files.text(rows), encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
