"""Runs with settings drawn at random: what is accepted gives the same bits however it is computed.

``python -m tests.random_runs [--first 0] [--count 100] [--ray]``: every number draws a method, data, a model, and
options of all sections. What cannot be combined must be refused by one of raysim's own errors. What can is run in this
process, and again stopped on the way and resumed; with ``--ray`` also on two actors, of which one dies if it has the
time. Exit code 1 if bits differ or code fails. A part of it is in the tests (tests/raysim/test_random_runs.py).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from raysim.config import registry
from raysim.errors import RaysimError
from raysim.running.simulation import run
from tests.actors.runs import Lender
from tests.fingerprint import fingerprint
from tests.small_runs import small_run
from tests.watch import stopped

Draws = Mapping[str, tuple[float, Sequence[Any]]]
"""Path of an option → how probable it is to be set, and its values."""
GRAPHS = {"workload.name": "toy-graphs", "workload.clients": 4, "workload.graphs_per_client": 24}
IMAGES = {"workload.name": "digits", "workload.clients": 6, "workload.limit": 150}
BASE = {"training.batch_size": 8, "schedule.rounds": 4, "schedule.local_epochs": 1, "engine.dashboard": False}
OPTIONS: Draws = {
    "workload.validation_share": (0.1, [0.2]),
    "training.optimizer": (0.2, ["adam", "adamw"]),
    "training.momentum": (0.15, [0.5]),
    "training.weight_decay": (0.15, [0.01]),
    "training.learning_rate_decay": (0.2, [0.9]),
    "training.steps_per_epoch": (0.2, [1, 3]),
    "schedule.local_epochs": (0.3, [2]),
    "schedule.intervals": (0.15, ["random", "fixed"]),
    "schedule.sampling_rate": (0.4, [0.5, 0.7]),
    "schedule.sampling": (0.3, ["poisson", "by-size", "power-of-choice", "oort"]),
    "schedule.unseen_clients": (0.1, [1]),
    "evaluation.every": (0.4, [2, 3]),
    "evaluation.auc": (0.2, [True, False]),
    "evaluation.decompose_every": (0.15, [2]),
    "evaluation.patience": (0.1, [1]),
    "engine.merge_single_steps": (0.1, [False]),
    "engine.checkpoint_every": (0.7, [1, 2, 3]),
}
SECTIONS: Mapping[str, tuple[float, Draws]] = {
    "attack": (
        0.3,
        {
            "attack.kind": (1, ["label-flip", "backdoor", "sign-flip", "gaussian", "alie", "ipm"]),
            "attack.malicious": (0.3, [(0,), (1, 3)]),
            "attack.from_round": (0.3, [2]),
        },
    ),
    "privacy": (
        0.25,
        {
            "privacy.kind": (1, ["central", "local", "dp-sgd"]),
            "privacy.noise_multiplier": (1, [0.0, 0.1, 1.0]),
            "privacy.clip": (0.5, [0.5]),
        },
    ),
    "compression": (
        0.35,
        {
            "compression.kind": (1, ["top-k", "random-k", "int8", "int4", "sign", "low-rank"]),
            "compression.error_feedback": (0.5, [True]),
            "compression.down": (0.4, ["top-k", "int8", "sign", "low-rank", "random-k"]),
        },
    ),
    "defense": (
        0.25,
        {
            "defense.rule": (
                1,
                ["median", "trimmed-mean", "krum", "multi-krum", "geometric-median", "centered-clipping", "norm-bound"],
            ),
            "defense.before": (0.3, ["mixing", "bucketing"]),
        },
    ),
    "devices": (
        0.45,
        {
            "devices.preset": (1, ["uniform", "classes", "phones", "day"]),
            "devices.drop_probability": (0.4, [0.2]),
            "timing.mode": (1, ["sync", "quorum", "over-select", "async", "buffered"]),
            "timing.late": (0.2, ["carry"]),
            "timing.staleness": (0.2, ["hinge", "constant"]),
            "timing.buffer": (0.5, [2]),
        },
    ),
    "events": (
        0.15,
        {
            "events.drift": (1, ["labels", "features"]),
            "events.drift_round": (1, [3]),
            "events.drift_share": (0.5, [0.5]),
        },
    ),
}


def drawn(number: int) -> dict[str, Any]:
    """The settings that belong to a number, by their paths."""
    source = random.Random(number)

    def some_of(draws: Draws) -> dict[str, Any]:
        return {path: source.choice(values) for path, (chance, values) in draws.items() if source.random() < chance}

    chosen: dict[str, Any] = {"method.name": source.choice(sorted(registry.known("method")))}
    if source.random() < 0.2:
        chosen |= GRAPHS
    else:
        chosen |= IMAGES | {"model.name": source.choice(["logistic", "mlp", "cnn"])}
        chosen |= some_of({"workload.partition": (0.4, ["iid", "dirichlet", "quantity", "shards"])})
    chosen |= BASE | some_of(OPTIONS)
    for chance, draws in SECTIONS.values():
        if source.random() < chance:
            chosen |= some_of(draws)
    return chosen


def outcome(number: int, folder: Path, lender: Lender | None = None) -> str:
    """``refused``, ``equal``, or what is wrong with the run of a number."""
    settings, rounds = drawn(number), 1 + number % 3

    try:
        whole = run(small_run(folder / "whole", settings))
    except RaysimError as error:
        return f"code failed: {error}" if "Traceback" in str(error) else "refused"
    except Exception:
        return f"code failed: {traceback.format_exc()}"
    expected = fingerprint(whole.folder)
    if len(whole.rounds) > rounds:
        config = small_run(folder / "stopped", settings)
        path = stopped(config, rounds)
        run(config, resume=path)
        if fingerprint(path) != expected:
            return f"differs when it is stopped after round {rounds}"
    on_actors = small_run(folder / "actors", settings, engine__backend="ray")
    dies = len(whole.rounds) > 2 and not on_actors.devices.on  # in virtual time round 2 may have no task of its own
    pooled = on_actors.method.traits.pooled  # whose one client is on one actor
    if lender is not None and not pooled and lender.run(on_actors, 2, dies=dies) != expected:
        return "differs on two actors"
    return "equal"


def main() -> int:
    """The command line; 1 if a run is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_runs", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--ray", action="store_true", help="also on two client actors, of which one dies")
    asked = parser.parse_args()
    found: Counter[str] = Counter()
    with Lender() if asked.ray else nullcontext() as lender:
        for number in range(asked.first, asked.first + asked.count):
            with tempfile.TemporaryDirectory() as folder:
                said = outcome(number, Path(folder), lender)
            if said not in ("refused", "equal"):
                print(f"{number}, {drawn(number)}: {said}", flush=True)
                said = "wrong"
            found[said] += 1
    print(", ".join(f"{count} {said}" for said, count in sorted(found.items())))
    return 1 if found["wrong"] or not found["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
