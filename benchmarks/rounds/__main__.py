"""The command line: all systems in turns, medians, ratios to the bare loop, and whether each of them trains.

python -m benchmarks.rounds                                              # everything
python -m benchmarks.rounds --workloads W2 --systems bare raysim --repeats 1
python -m benchmarks.rounds --variant "raysim bf16=--training.precision bf16"  # one more line, of raysim's options
python -m benchmarks.rounds --workloads W2 --systems raysim --checked 200      # memory's growth over 200 rounds
python -m benchmarks.rounds --rows docs/results/rounds.csv               # a row of every start, as soon as it has ended
python -m benchmarks.rounds --rows docs/results/rounds.csv --table       # nothing is run: the table of these rows

A start that fails is noted and has no row; the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.published import add, machine
from benchmarks.rounds import data, environments, report
from benchmarks.rounds.running import Run, RunError, System, log, run
from benchmarks.rounds.task import WORKLOADS, Workload

SYSTEMS = (
    System("bare", "bare"),
    System("flower", "flower_app"),
    System("pfl", "pfl_app"),
    System("raysim", "raysim_run"),
    System("raysim without dashboard", "raysim_run", ("--engine.dashboard", "false")),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [system.name for system in SYSTEMS]
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--systems", nargs="+", choices=names, default=names)
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=OPTIONS", help="raysim with options")
    parser.add_argument("--repeats", type=int, default=3, help="times that each system is started, in turns")
    parser.add_argument("--timed", type=int, help="rounds to time in each start; default: by workload")
    parser.add_argument("--tolerance", type=float, default=0.05, help="of the accuracy, about the bare loop's")
    parser.add_argument(
        "--checked", type=int, help="rounds of the last, untimed start, whose memory and accuracy count"
    )
    parser.add_argument("--no-check", action="store_true", help="leave that start out")
    parser.add_argument("--cache", type=Path, default=environments.CACHE, help="folder of environments and data")
    parser.add_argument("--rows", type=Path, help="the CSV file that a row of each start is added to")
    parser.add_argument("--table", action="store_true", help="only print the table of the rows in the file")
    options = parser.parse_args()
    if options.table:
        print(report.of_rows(options.rows))
        return 0
    systems = [system for system in SYSTEMS if system.name in options.systems]
    for text in options.variant:
        name, _, words = text.partition("=")
        systems.append(System(name, "raysim_run", tuple(shlex.split(words))))
    options.cache.mkdir(parents=True, exist_ok=True)
    pythons = {system.name: environments.python(system.name, options.cache) for system in systems}
    whole = True
    for name in options.workloads:
        workload = WORKLOADS[name]
        path = options.cache / f"{name}-noise{workload.noise:g}.npz"
        if not path.exists():
            data.make(workload, path)
        starts = Starts(workload, path, pythons, options.rows)
        rounds = workload.warm_up + (options.timed or workload.timed)
        timed: dict[str, list[Run]] = {system.name: [] for system in systems}
        for repeat in range(options.repeats):
            for system in systems:
                timed[system.name] += starts.run(system, rounds, f"{repeat + 1}/{options.repeats}", watched=False)
        watched: dict[str, Run] = {}
        for system in systems if not options.no_check else ():
            for one in starts.run(system, options.checked or workload.checked, "checked", watched=True):
                watched[system.name] = one
        finished = {system: runs for system, runs in timed.items() if runs}
        whole &= starts.failed == 0
        if finished:
            table = report.table(workload, finished, watched, options.tolerance)
            print(table.text, flush=True)
            whole &= table.trains
    return 0 if whole else 1


@dataclass
class Starts:
    """Starts of the systems on one workload; one that fails is noted and counted, and the others go on."""

    workload: Workload
    data: Path
    pythons: Mapping[str, str]
    """The interpreter of each system."""
    rows: Path | None
    """The CSV file that a row of each start is added to."""
    failed: int = 0

    def run(self, system: System, rounds: int, label: str, *, watched: bool) -> list[Run]:
        """The run, or nothing if it failed."""
        name = self.workload.name
        try:
            one = run(system, self.pythons[system.name], name, self.data, rounds, watch_memory=watched)
        except RunError as error:
            log(str(error))
            self.failed += 1
            return []
        log(f"{name} {label} {system.name}: {' '.join(f'{value:.3g}' for value in one.result.seconds)} s")
        if self.rows:
            add(self.rows, report.row(self.workload, system.name, one, watched=watched) | machine())
        return [one]


if __name__ == "__main__":
    sys.exit(main())
