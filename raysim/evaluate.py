"""Judges the trained model of a run again, on the workload's test set and on the clients' own.

``python -m raysim.evaluate FOLDER``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from raysim import portable
from raysim.cli.foreign_folder import add_trust, read_config
from raysim.config.answering import Answer, answered
from raysim.config.run_config import RunConfig, with_sections
from raysim.engine.observer import Silent
from raysim.errors import ResultsError
from raysim.remote.places import run_folder
from raysim.storage.run_folder import RunFolder


def evaluate_again(config: RunConfig, folder: Path) -> tuple[int, dict[str, Any]]:
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
        seconds = _virtual_seconds(run, state.round) if config.events.drift_at else 0.0
        return state.round, evaluate_round(config, pool, state, [], Silent().note, seconds)


def _virtual_seconds(run: RunFolder, number: int) -> float:
    """When a round ended in virtual time, by the run's table, on which drifting data depend."""
    rows = run.rounds()
    found = rows.loc[rows["round"] == number, "virtual_seconds"].tolist() if "virtual_seconds" in rows else []
    if not found:
        raise ResultsError(
            f"{run.path}: rounds.csv does not say when round {number} ended, and the data change with "
            "events.drift_at. Judge a folder that is whole"
        )
    return float(found[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m raysim.evaluate",
        description="Judge the trained model of a run again: that of its last checkpoint, on the workload's test set "
        "and on the clients' own. The folder is only read.",
    )
    parser.add_argument("folder", type=run_folder, metavar="FOLDER", help="a run's folder, or its remote address")
    parser.add_argument("--cpu", action="store_true", help="judge on the CPU, also a run that was on a GPU")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_trust(parser)
    return answered(parser, arguments, _judged)


def _judged(options: argparse.Namespace) -> Answer:
    config = read_config(options.folder, options)
    if config.engine.portable:
        portable.ensure()
    if options.cpu:
        config = with_sections(config, engine=replace(config.engine, gpus_per_client=0.0))
    number, found = evaluate_again(config, options.folder)
    rows = RunFolder(options.folder).rounds()
    same_round = rows[rows["round"] == number].to_dict("records")
    row = (same_round or [{}])[-1]
    there = {name: row[name] for name in found if name in row and row[name] == row[name]}  # NaN: it was not judged
    others = {name: before for name, before in there.items() if before != found[name]}
    told = {"round": number, "rounds": config.schedule.rounds, "values": found, "rounds.csv": others}
    return Answer(_text(told), told)


def _text(told: Mapping[str, Any]) -> str:
    """Every number in full, and beside it what rounds.csv says where that is another."""
    others = told["rounds.csv"]
    lines = [f"round {told['round']} of {told['rounds']}"]
    for name, value in told["values"].items():
        lines.append(f"{name:<30}{value!r}" + (f"  (rounds.csv: {others[name]!r})" if name in others else ""))
    if others:
        lines.append("Other processors, GPUs or versions of torch round differently: environment.json names the run's.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
