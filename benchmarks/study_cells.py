"""Cells of a study side by side against one after another: ``python -m benchmarks.study_cells``.

60 cells (2 methods × 5 rates × 6 seeds) of digits, computed by ``--workers 1`` and by as many workers as cores may be
used. The ideal time is the sum of the cells' times with one worker, divided by the number of workers; the whole times
of the commands, start and table included, stand beside it. The results of both must be the same bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRID = ("--grid", "method=fedavg,fedprox", "--grid", "learning_rate=0.01,0.02,0.05,0.1,0.2", "--seeds", "0-5")
RUN = ("--workload", "digits", "--model", "mlp", "--clients", "10")
SECONDS = re.compile(r": finished.*, ([\d.:]+)")


def measured(folder: Path, workers: int, rounds: int) -> tuple[float, float]:
    """Seconds of the whole command, and of its cells together."""
    words = [sys.executable, "-m", "raysim.study", *GRID, *RUN, "--rounds", str(rounds), "--output", str(folder)]
    begun = time.monotonic()
    done = subprocess.run([*words, "--workers", str(workers)], check=True, capture_output=True, text=True)
    whole = time.monotonic() - begun
    return whole, sum(float(match[1]) for line in done.stdout.splitlines() if (match := SECONDS.search(line)))


def rows(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("results/*.csv")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    workers = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder) / "one", Path(folder) / "many"
        alone, cells = measured(one, 1, rounds)
        together, _ = measured(many, workers, rounds)
        same = rows(one) == rows(many)
    print(f"one worker: {alone:.1f} s, its 60 cells {cells:.1f} s; {workers} workers: {together:.1f} s")
    ideal, command = cells / workers, alone / workers
    print(
        f"{together / ideal:.3f} of the ideal {ideal:.1f} s, {together / command:.3f} of the command's {command:.1f} s"
    )
    print("the rows are the same bytes" if same else "THE ROWS DIFFER")


if __name__ == "__main__":
    main()
