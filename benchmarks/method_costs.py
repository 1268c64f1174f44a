"""The cost of a round of every row of a study, relative to one row of the same study.

    RAYSIM_DATA=/path/to/data python -m benchmarks.method_costs docs/studies/image-methods.yaml --baseline FedAvg

Every row's run with its first seed, cut to a few rounds and evaluated after the last alone, in this process with one
thread. Each turn runs a row right after the baseline, and the ratio is of these two: a machine with other work on it
changes both. Seconds are CPU seconds of a round, the median over the rounds behind the first, in which what is needed
later is loaded. ``--rows FILE`` writes what is printed to a CSV file.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd

from raysim.config.run_config import RunConfig
from raysim.engine.observer import Silent
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from raysim.studies.study_file import read


class Rounds(Silent):
    """Notes the process's CPU seconds at the start of every round, and at the end of the last."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.times.append(time.process_time())

    def round_finished(self, row: object) -> None:
        self.times.append(time.process_time())

    def seconds(self) -> float:
        """The median over the rounds from the second on, without what lies between two rounds."""
        return statistics.median(end - start for start, end in zip(self.times[2::2], self.times[3::2], strict=True))


def cost(config: RunConfig) -> float:
    """CPU seconds of a round."""
    with tempfile.TemporaryDirectory() as folder:
        config = replace(config, output=str(Path(folder) / "run"), pictures=False)
        rounds = Rounds()
        outcome = execute(config, prepare(config), rounds)
        assert outcome.status == "finished", outcome.message
    return rounds.seconds()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--baseline", required=True, help="name of a row")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    cells = {cell.row: cell.config() for cell in reversed(list(read(options.study).cells()))}
    short = {
        name: replace(
            config,
            schedule=replace(config.schedule, rounds=options.rounds),
            evaluation=replace(config.evaluation, every=options.rounds, client_limit=1),
        )
        for name, config in reversed(cells.items())
    }
    found = []
    for name, config in short.items():
        pairs = [(cost(short[options.baseline]), cost(config)) for _ in range(options.turns)]
        row = {
            "row": name,
            "seconds_round": round(statistics.median(own for _, own in pairs), 3),
            "ratio": round(statistics.median(own / base for base, own in pairs), 2),
        }
        found.append(row)
        print(f"{name:12} {row['seconds_round']:8} CPU-s a round, {row['ratio']} of {options.baseline}'s", flush=True)
        if options.rows is not None:
            pd.DataFrame(found).to_csv(options.rows, index=False)


if __name__ == "__main__":
    main()
