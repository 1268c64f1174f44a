"""An audit of the privacy that runs claim: ε is at most what rounds.csv says, and canaries show what it is at least.

``python -m benchmarks.canary_audit`` trains no useful model. Every client is a canary, whose update is far longer than
the bound and points along a coordinate of its own, up or down as a coin falls; with DP-SGD every sample is, whose
gradient has a coordinate of its own, or is 0. From the last global model alone an attacker guesses the coins of the
canaries of which it is surest. If a run has ε, each guess is right with probability at most e^ε / (1 + e^ε), up to δ:
the number of right guesses gives a lower bound of ε (Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1)
training run, Theorem 5.2). It prints the claim and the bound for each setting, and exits with 1 if a bound is larger.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import stats

import raysim
from raysim import seeds
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Message, Traits, Update
from raysim.methods.fedavg import FedAvg
from raysim.workloads.federated_data import ClientData

CONFIDENCE = 0.95
Options = Mapping[str, object]
SETTINGS: Mapping[str, Options] = {
    "central, all clients": {"privacy.kind": "central"},
    "central, a fifth of the clients": {"privacy.kind": "central", "schedule.sampling_rate": 0.2},
    "central, adaptive bound": {"privacy.kind": "central", "privacy.clip_quantile": 0.5},
    "dp-sgd": {"privacy.kind": "dp-sgd"},
}


@dataclass(frozen=True)
class Audit:
    """The ε that a run claims, and the lower bound that its audit found."""

    claimed: float
    """ε from the run's rounds table; infinite without noise."""
    found: float
    """A lower bound of ε, with confidence ``CONFIDENCE``."""
    right: int
    guesses: int


@dataclass(frozen=True)
class Canaries(FedAvg):
    """Federated averaging in which each client's update is its canary."""

    traits: ClassVar[Traits] = Traits(weighted_mean=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        delta = np.zeros(model.shared.numel(), np.float32)
        delta[task.client] = 1e6 * coin(task.seed, task.client)
        return Update(delta, {"train_loss": 0.0, "steps": 0.0}), None


def coin(seed: int, client: int) -> int:
    """1 or −1."""
    return int(seeds.numpy_generator(seed, "canary", 0, client).integers(2)) * 2 - 1


def at_least(canaries: int, guesses: int, right: int, delta: float) -> float:
    """A lower bound of ε from an attacker's right guesses, with confidence ``CONFIDENCE``; 0 without right guesses.

    Args:
        canaries: how many there are, guessed or not.
        guesses: how many the attacker guessed.
        right: how many of these are right.
        delta: δ of the claim.
    """

    def plausibility(epsilon: float) -> float:
        rate = 1 / (1 + math.exp(-epsilon))
        below = np.cumsum(stats.binom.pmf(right - np.arange(1, right + 1), guesses, rate))
        excess = float(np.max(below / np.arange(1, right + 1), initial=0.0))
        return float(stats.binom.sf(right - 1, guesses, rate)) + 2 * canaries * delta * excess

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if plausibility(middle) < 1 - CONFIDENCE else (low, middle)
    return low


def audited_clients(options: Options, canaries: int, rounds: int, seed: int) -> Audit:
    """Every client is a canary; an attacker guesses which way it pointed."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1, canaries), torch.nn.Linear(canaries, 2))
    data = [(np.zeros((2, 1), np.float32), np.arange(2)) for _ in range(canaries)]
    up = [coin(seed, client) > 0 for client in range(canaries)]
    return guessed(up, seed, rounds, options, method=Canaries(), model=model, clients=data, test=data[0])


def audited_samples(options: Options, canaries: int, rounds: int, seed: int) -> Audit:
    """Every sample of one client is a canary: a coordinate of its own, or nothing, as its coin fell.

    The loss is minus the output of a linear model, so that the gradient of a sample is minus its inputs.
    """
    model = torch.nn.Linear(canaries, 1, bias=False)
    there = [coin(seed, sample) > 0 for sample in range(canaries)]
    data = np.diag(np.array(there, np.float32) * 1e6), np.zeros(canaries, np.float32)
    training = {"batch_size": canaries // 4, "learning_rate": 1.0}
    objects = {"method": "fedavg", "model": model, "clients": [data], "test": data, "training": training}
    return guessed(there, seed, rounds, options, loss=lambda outputs, labels: -outputs[:, 0], **objects)


def guessed(truth: Sequence[bool], seed: int, rounds: int, options: Options, **given: Any) -> Audit:
    """The audit of one run, by the change of the coordinates that belong to canaries.

    Args:
        truth: of each canary, whether its coordinate was moved upwards; else down, or not at all.
        given: the run's objects.
    """
    before = next(given["model"].parameters()).detach().flatten().numpy().copy()
    with tempfile.TemporaryDirectory() as folder:
        result = raysim.run(
            output=str(Path(folder) / "run"),
            seed=seed,
            pictures=False,
            schedule={"rounds": rounds, "sampling_rate": options.get("schedule.sampling_rate", 1.0)},
            evaluation={"every": rounds, "client_limit": 1},
            engine={"backend": "inline"},
            privacy={name.removeprefix("privacy."): value for name, value in options.items() if "privacy." in name},
            **given,
        )
        assert result.settings is not None
        delta = result.settings.privacy.delta
        after = next(result.model.parameters()).detach().flatten().numpy()
    scores = after - before
    scores -= np.median(scores)
    guesses = len(truth) // 10
    surest = np.argsort(-np.abs(scores), kind="stable")[:guesses].tolist()
    right = sum((scores[canary] > 0) == truth[canary] for canary in surest)
    claimed = float(result.rounds["epsilon"].iloc[-1]) if "epsilon" in result.rounds else math.inf
    return Audit(claimed, at_least(len(truth), guesses, right, delta), right, guesses)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.canary_audit", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=8.0, help="what noise is found for")
    parser.add_argument("--canaries", type=int, default=2000, help="clients or samples")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=Path, help="also write the findings to this CSV file")
    chosen = parser.parse_args(arguments)
    refuted = False
    runs = {name: {**options, "privacy.epsilon": chosen.epsilon} for name, options in SETTINGS.items()}
    runs["central, without noise"] = {"privacy.kind": "central", "privacy.noise_multiplier": 0.0}
    rows: list[Sequence[object]] = [("setting", "claimed", "found", "right", "guesses")]
    for name, options in runs.items():
        audited = audited_samples if options["privacy.kind"] == "dp-sgd" else audited_clients
        audit = audited(options, chosen.canaries, chosen.rounds, chosen.seed)
        refuted |= audit.found > audit.claimed
        rows.append((name, f"{audit.claimed:.2f}", f"{audit.found:.2f}", audit.right, audit.guesses))
        found = f"audit ε ≥ {audit.found:.2f} ({audit.right} of {audit.guesses} guesses right)"
        print(f"{name}: claimed ε ≤ {audit.claimed:.2f}, {found}", flush=True)
    if chosen.rows:
        with chosen.rows.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    return int(refuted)


if __name__ == "__main__":
    sys.exit(main())
