"""Processor time of every study of docs/studies, estimated from the beginning of one of its runs.

    RAYSIM_DATA=/path/to/data python -m benchmarks.study_costs [NAME ...]

The first run of a study begins in this process with one thread: its second and third round are timed, in seconds of the
processor. The estimate is that mean, times the rounds of all its runs; half of it is the time on two cores. Runs differ
in methods and data, so it says an order of magnitude. Rows go to docs/results/study-costs.csv as they come.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from benchmarks.method_costs import Rounds
from raysim.errors import RaysimError
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from raysim.schedule import planned_intervals
from raysim.studies.cell_run import config_of
from raysim.studies.study_file import Study, read

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "docs" / "results" / "study-costs.csv"


def cost(study: Study) -> dict[str, object]:
    """The row of one study.

    Raises:
        RaysimError: its data is not here.
    """
    cells = list(study.cells())
    rounds = sum(len(planned_intervals(cell.config())) for cell in cells)
    config, noted = config_of(cells[0]), Rounds()
    schedule = replace(config.schedule, rounds=3, epochs=0)
    with tempfile.TemporaryDirectory() as folder:
        config = replace(config, schedule=schedule, output=str(Path(folder, "run")))
        outcome = execute(config, prepare(config), noted)
    if outcome.status != "finished":
        raise RaysimError(outcome.message)
    seconds = (noted.times[-1] - noted.times[1]) / 2
    figures = {"runs": len(cells), "rounds": rounds, "seconds_round": round(seconds, 3)}
    return {"study": study.path.stem, **figures, "processor_seconds": round(seconds * rounds)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="studies by the stems of their files (default: those without a row)")
    names = parser.parse_args().names
    torch.set_num_threads(1)
    found: list[dict[Any, Any]] = pd.read_csv(ROWS).to_dict("records") if ROWS.exists() else []
    known = {row["study"] for row in found}
    chosen = names or [path.stem for path in sorted(ROOT.glob("docs/studies/*.yaml")) if path.stem not in known]
    for name in chosen:
        try:
            row = cost(read(ROOT / "docs" / "studies" / f"{name}.yaml"))
        except RaysimError as error:
            print(f"{name}: {error}")
            continue
        found = sorted([*(other for other in found if other["study"] != name), row], key=lambda one: str(one["study"]))
        pd.DataFrame(found).to_csv(ROWS, index=False)
        print(row, flush=True)


if __name__ == "__main__":
    main()
