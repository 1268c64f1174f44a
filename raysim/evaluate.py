"""Judges the trained model of a run again, on the workload's test set and on the clients' own.

``python -m raysim.evaluate FOLDER``
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from raysim import portable
from raysim.cli.answering import Answer, answered
from raysim.cli.foreign_folder import add_trust, read_config
from raysim.config.run_config import RunConfig, with_sections
from raysim.engine.observer import Silent
from raysim.remote.places import run_folder
from raysim.storage.run_folder import RunFolder


def evaluate_again(config: RunConfig, folder: Path) -> tuple[int, dict[str, float]]:
    """The round of the newest checkpoint, and what its row of the rounds table holds of the model's quality.

    In this process, with the slices, batches and threads of the run, so that on the same kind of machine every number
    has the same bits. The folder is only read.

    Raises:
        ResultsError: the folder is no run.
        DamagedError: there is no checkpoint that can be read.
        RaysimError: as a run's own evaluation.
    """
    from raysim.client_side.device import device_of
    from raysim.client_side.last_batch import with_last_batch
    from raysim.client_side.worker import Worker, fixed_threads
    from raysim.engine import precision_probe
    from raysim.engine.evaluation import evaluate_round
    from raysim.engine.inline_backend import InlinePool
    from raysim.engine.load_federation import load_federation
    from raysim.results.newest_state import newest_state
    from raysim.workloads.parallel_map import Sequential

    run = RunFolder.open(folder)
    federation = load_federation(config, Sequential())
    worker = Worker(config, federation, device_of(config.engine))
    with fixed_threads(config.engine.threads):
        state, pool = newest_state(run, worker), InlinePool(worker)
        if config.evaluation.fine_tune:  # the only part of an evaluation that trains
            config = with_last_batch(precision_probe.resolve(config, pool, folder, Silent().note), worker)
        return state.round, evaluate_round(config, pool, state, [], Silent().note)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.evaluate",
        description="Judge the trained model of a run again: that of its last checkpoint, on the workload's test set "
        "and on the clients' own. The folder is only read.",
    )
    parser.add_argument("folder", type=run_folder, metavar="FOLDER", help="a run's folder, or its remote address")
    parser.add_argument("--cpu", action="store_true", help="judge on the CPU, also a run that was on a GPU")
    add_trust(parser)
    return answered(parser, arguments, _judged)


def _judged(options: argparse.Namespace) -> Answer:
    config = read_config(options.folder, options)
    if config.engine.portable:
        portable.start_again()
    if options.cpu:
        config = with_sections(config, engine=replace(config.engine, gpus_per_client=0.0))
    return Answer(_text(options.folder, config))


def _text(folder: Path, config: RunConfig) -> str:
    """Every number in full, and beside it what rounds.csv says where that is another."""
    number, found = evaluate_again(config, folder)
    rows = RunFolder(folder).rounds()
    same_round = rows[rows["round"] == number].to_dict("records")
    row = same_round[-1] if same_round else {}
    lines, differ = [f"round {number} of {config.schedule.rounds}"], 0
    for name, value in found.items():
        before = float(row.get(name, math.nan))
        other = before != value and not math.isnan(before)
        differ += other
        lines.append(f"{name:<30}{value!r}" + (f"  (rounds.csv: {before!r})" if other else ""))
    if differ:
        lines.append("Other processors, GPUs or versions of torch round differently: environment.json names the run's.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
