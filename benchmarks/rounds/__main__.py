"""The command line: all systems in turns, medians, ratios to the bare loop, and whether each of them trains.

python -m benchmarks.rounds                                              # everything
python -m benchmarks.rounds --workloads W2 --systems bare raysim --repeats 1
python -m benchmarks.rounds --variant "raysim bf16=--training.precision bf16"  # one more line, of raysim's options
python -m benchmarks.rounds --workloads W2 --systems raysim --checked 200      # memory's growth over 200 rounds
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from benchmarks.rounds import data, environments, report
from benchmarks.rounds.running import Run, RunError, System, log, run
from benchmarks.rounds.task import WORKLOADS

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
    parser.add_argument("--output", type=Path, help="write all that was measured to this JSON file")
    options = parser.parse_args()
    systems = [system for system in SYSTEMS if system.name in options.systems]
    for text in options.variant:
        name, _, words = text.partition("=")
        systems.append(System(name, "raysim_run", tuple(shlex.split(words))))
    options.cache.mkdir(parents=True, exist_ok=True)
    pythons = {system.name: environments.python(system.name, options.cache) for system in systems}
    tables = []
    for name in options.workloads:
        workload = WORKLOADS[name]
        path = options.cache / f"{name}-noise{workload.noise:g}.npz"
        if not path.exists():
            data.make(workload, path)
        rounds = workload.warm_up + (options.timed or workload.timed)
        timed: dict[str, list[Run]] = {system.name: [] for system in systems}
        watched: dict[str, Run] = {}
        try:
            for repeat in range(options.repeats):
                for system in systems:
                    one = run(system, pythons[system.name], name, path, rounds, watch_memory=False)
                    timed[system.name].append(one)
                    seconds = " ".join(f"{value:.3g}" for value in one.result.seconds)
                    log(f"{name} {repeat + 1}/{options.repeats} {system.name}: {seconds} s")
            for system in systems if not options.no_check else ():
                rounds = options.checked or workload.checked
                watched[system.name] = run(system, pythons[system.name], name, path, rounds, watch_memory=True)
                log(f"{name} checked {system.name}")
        except RunError as error:
            print(error, file=sys.stderr)
            return 1
        tables.append(report.table(workload, timed, watched, options.tolerance))
        print(tables[-1].text, flush=True)
    if options.output:
        content = {"command": sys.argv[1:], "tables": [table.plain for table in tables]}
        options.output.write_text(json.dumps(content, indent=1) + "\n")
    return 0 if all(table.trains for table in tables) else 1


if __name__ == "__main__":
    sys.exit(main())
