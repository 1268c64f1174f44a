"""A run that was stopped and resumed, and a study, with a tracker; each tool's test reads the files back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raysim import study
from raysim.results.result import RunResult
from raysim.running.simulation import run
from tests.small_runs import small_run
from tests.watch import stopped

BASE: dict[str, Any] = {
    "model.name": "logistic",
    "workload.clients": 4,
    "workload.limit": 100,
    "schedule.rounds": 4,
    "evaluation.every": 2,
    "seed": 3,
}
EXPERIMENT = "A table: of runs"


def resumed(folder: Path, tracker: str) -> RunResult:
    """The run in ``folder``, stopped after two rounds and gone on with."""
    config = small_run(folder, BASE | {"engine.observer": tracker, "engine.experiment": EXPERIMENT})
    return run(config, resume=stopped(config, rounds=2))


def cells(folder: Path, tracker: str) -> dict[str, str]:
    """A study of two cells in ``folder``: the names of its cells and the heads of their proofs."""
    words = ["--grid", "method=fedavg", "--seeds", "0,1", "--title", EXPERIMENT, "--rounds", "2", "--model", "logistic"]
    more = ["--workload.limit", "100", "--clients", "3", "--observer", tracker, "--workers", "1"]
    assert study.main([*words, *more, "--output", str(folder)]) == 0
    return {path.stem: path.read_text().strip() for path in folder.glob("results/*.proof")}


def head(folder: Path) -> str:
    """The head of the run's proof."""
    summary = json.loads((folder / "summary.json").read_text())
    return str(summary["proof"])


def curves(result: RunResult) -> dict[str, list[tuple[int, float]]]:
    """Two columns of the rounds table as (round, value), without the rounds that did not measure them."""
    rounds = result.rounds
    return {
        name: list(zip(rounds["round"][rounds[name].notna()], rounds[name].dropna(), strict=True))
        for name in ("train_loss", "accuracy")
    }
