"""Processor seconds of a round of a run, by client: training and judging, in one process with one thread.

    RAYSIM_DATA=... python -m benchmarks.client_tasks method.name=fedssp workload.name=tudataset model.hidden=64
    python -m benchmarks.client_tasks --beside ../earlier --turns 3 --rows rows.csv method.name=fedssp …

Options are those of a config file, as KEY=VALUE. ``--beside FOLDER`` also measures the code of another checkout, in
turns, each turn a process of its own; ratios are those of a turn, so that other work on the machine reaches both.
``--authors FOLDER`` does so with the code of FedSSP's authors (benchmarks/agreement/fedssp_seconds.py), training alone.
Seconds are processor time of the client tasks of a round, the median over the rounds behind the first (in which what is
needed later is loaded), and of judging the clients once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import yaml

Seconds = Mapping[str, Mapping[str, float]]
"""Processor seconds by part, train or judge, and by the name of the client."""
ROOT = Path(__file__).resolve().parent.parent


def measured(options: Mapping[str, Any]) -> Seconds:
    """The seconds of one run in this process."""
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import build
    from raysim.engine.observer import Silent
    from raysim.running.open_run import prepare
    from raysim.running.simulation import execute

    spent: dict[str, dict[str, list[float]]] = {"train": defaultdict(list), "judge": defaultdict(list)}

    def timed(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def done(worker: Any, who: Any, *given: Any, **named: Any) -> Any:
            started = time.process_time()
            found = call(worker, who, *given, **named)
            client = who if part == "judge" else who.client
            spent[part][worker.federation.client_name(client)].append(time.process_time() - started)
            return found

        return done

    with tempfile.TemporaryDirectory() as folder:
        config = build([{"engine.backend": "inline", "output": f"{folder}/run", "pictures": False, **options}])
        with (
            mock.patch.object(Worker, "train", timed("train", Worker.train)),
            mock.patch.object(Worker, "judged", timed("judge", Worker.judged)),
        ):
            outcome = execute(config, prepare(config), Silent())
        assert outcome.status == "finished", outcome.message
    return {
        part: {name: statistics.median(values[1:] or values) for name, values in own.items()}
        for part, own in spent.items()
    }


def in_own_process(folder: Path, options: Mapping[str, Any]) -> Seconds:
    """The seconds of a run of the code in a folder."""
    return answer(folder, str(Path(__file__).resolve()), "--child", json.dumps(options))


def of_authors(checkout: Path, options: Mapping[str, Any]) -> Seconds:
    """The seconds of the authors' code in a checkout, on the same data."""
    return answer(ROOT, "-m", "benchmarks.agreement.fedssp_seconds", str(checkout), json.dumps(options))


def answer(folder: Path, *words: str) -> Seconds:
    """The last line that a Python process of its own prints, with the modules of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the run in {folder} failed:\n{done.stderr[-3000:]}")
    found: Seconds = json.loads(done.stdout.splitlines()[-1])
    return found


def rows_of(turns: list[tuple[Seconds, Seconds | None]]) -> list[dict[str, Any]]:
    """A row for each client, and one for the whole round."""
    rows = []
    for name in [*turns[0][0]["train"], "all"]:
        row: dict[str, Any] = {"client": name}
        for part in ("train", "judge"):
            pairs = [
                (total(own, part, name), total(old, part, name) if old and part in old else None) for own, old in turns
            ]
            row[f"{part}_seconds"] = round(statistics.median(own for own, _ in pairs), 3)
            if pairs[0][1] is not None:
                row[f"{part}_seconds_beside"] = round(statistics.median(old for _, old in pairs if old is not None), 3)
                ratios = [own / old for own, old in pairs if old]
                row[f"{part}_ratio"] = round(statistics.median(ratios), 3)
                row[f"{part}_ratios"] = f"{min(ratios):.3f} to {max(ratios):.3f}"
        rows.append(row)
    return rows


def total(seconds: Seconds, part: str, name: str) -> float:
    """The seconds of a client, or of all."""
    return sum(seconds[part].values()) if name == "all" else seconds[part][name]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("options", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=1)
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument("--beside", type=Path, help="a checkout whose code is measured too")
    beside.add_argument("--authors", type=Path, help="a checkout of FedSSP's authors, whose code is measured too")
    parser.add_argument("--rows", type=Path, help="CSV file that the results are added to")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(measured(json.loads(asked.child))))
        return
    given = {key: yaml.safe_load(value) for key, value in (option.split("=", 1) for option in asked.options)}
    options = {"schedule.rounds": asked.rounds, "evaluation.every": asked.rounds, **given}
    turns = []
    for _ in range(asked.turns):
        own = in_own_process(ROOT, options)
        other = None
        if asked.beside or asked.authors:
            measure = in_own_process if asked.beside else of_authors
            other = measure((asked.beside or asked.authors).resolve(), options)
        turns.append((own, other))
    rows = rows_of(turns)
    print(pd.DataFrame(rows).to_string(index=False))
    if asked.rows:
        from benchmarks.published import add  # not above: a run of another checkout would import that one

        for row in rows:
            add(asked.rows, row | {"options": " ".join(asked.options), "rounds": asked.rounds, "turns": asked.turns})


if __name__ == "__main__":
    main()
