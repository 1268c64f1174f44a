"""The section ``attack``: which clients are malicious, what they train with, and what they send."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from raysim import seeds
from raysim.aggregators.means import weighted_sum
from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.method import ClientTask, Module, Tensor, Vector
from raysim.workloads.federated_data import Batch, ChangedSamples, ClientData, Federation, Samples, distinct_tasks
from raysim.workloads.metrics import EvaluationSums, evaluate
from raysim.workloads.objective import Objective, objective_of

SUCCESS = "attack_success"
"""Column of the tables: the share of test samples that are given the label that the attackers want."""
BLOCK = 65_536
"""Entries whose deviations are computed at a time."""


@dataclass(frozen=True)
class Trigger:
    """A square of white pixels in the lower right corner of an image (Gu et al. 2017, BadNets, arXiv 1708.06733)."""

    size: int
    """Pixels of a side."""
    white: tuple[float, ...]
    """The largest value of a pixel, after normalization, of each channel."""
    target: int
    """The label that the attackers want."""

    def stamped(self, images: Tensor) -> Tensor:
        """The images [B, C, H, W] with the trigger, a new tensor."""
        result = images.clone()
        result[:, :, -self.size :, -self.size :] = images.new_tensor(self.white)[:, None, None]
        return result


def trigger_of(attack: Attack, federation: Federation) -> Trigger | None:
    """The trigger of a run; None without a backdoor."""
    if attack.kind != "backdoor":
        return None
    white = [(1 - float(m)) / float(d) for m, d in zip(federation.mean, federation.deviation, strict=True)]  # type: ignore[attr-defined]
    return Trigger(attack.patch, tuple(white), attack.target_label)


@lru_cache(maxsize=16)
def malicious(attack: Attack, seed: int, clients: int) -> frozenset[int]:
    """The malicious ones of this many clients: those that the config names, or ⌊share · N⌋, at least one."""
    if attack.malicious or not attack.on:
        return frozenset(attack.malicious)
    count = max(1, int(attack.malicious_share * clients + 1e-9))
    draws = seeds.numpy_generator(seed, "attack clients")
    return frozenset(draws.permutation(clients)[:count].tolist())


def check_attack(attack: Attack, federation: Federation, clients: int) -> None:
    """ConfigError for an attack that these data, of which ``clients`` take part, do not allow."""
    unknown = [client for client in attack.malicious if client >= clients]
    if unknown:
        raise ConfigError(
            f"attack.malicious: {unknown[0]} is no client that takes part. Allowed: numbers from 0 to {clients - 1}."
        )
    kind = objective_of(federation).kind
    if attack.kind == "label-flip" and kind != "classification":
        raise ConfigError(
            f"attack.kind: label-flip needs data with a class for each sample, and this is {kind}. Take another attack."
        )
    if attack.kind == "backdoor":
        check_backdoor(attack, federation)


def check_backdoor(attack: Attack, federation: Federation) -> None:
    """ConfigError for data that have no images, or images that this trigger and label do not fit."""
    if not (hasattr(federation, "mean") and hasattr(federation, "deviation")):
        raise ConfigError(
            f"attack.kind: backdoor needs images with a known largest value, and {federation.name} has none. Take "
            "another attack, or an image workload such as cifar10 or digits."
        )
    for task in distinct_tasks(federation):
        if attack.target_label >= task.classes:
            raise ConfigError(
                f"attack.target_label: {attack.target_label} is no class of {federation.name}. Allowed: 0 to "
                f"{task.classes - 1}."
            )
        largest = min(task.input_shape[1:]) - 1
        if attack.patch > largest:
            raise ConfigError(
                f"attack.patch: {attack.patch} pixels would cover an image of {federation.name}. Allowed: 1 to "
                f"{largest}."
            )


def judged_by(attack: Attack, objective: Objective) -> Objective:
    """The objective, where labels are flipped with ``attack_success``: how often the attackers' label is predicted."""
    if attack.kind != "label-flip" or objective.kind != "classification":
        return objective
    return replace(objective, metrics={**objective.metrics, SUCCESS: attack_success})


def attack_success(outputs: Tensor, labels: Tensor) -> Tensor:
    """1 for each sample that is given the label that malicious clients train it with [B]."""
    return (outputs.argmax(dim=1) == flipped(labels, outputs.shape[1])).double()


def triggered(module: Module, samples: Samples, trigger: Trigger, batch_size: int, classes: int) -> EvaluationSums:
    """Evaluation on test samples of other classes with the trigger; its accuracy is the success of the attack."""

    def batches() -> Iterator[Batch]:
        for batch in samples.batches(batch_size):
            others = batch.y != trigger.target
            if others.any():
                yield Batch(trigger.stamped(batch.x[others]), batch.y[others].fill_(trigger.target))

    return evaluate(module, batches(), classes)


def flipped(labels: Tensor, classes: int) -> Tensor:
    """y + 1, the last class as 0: no label stays."""
    return (labels + 1) % classes


def poisoned(attack: Attack, data: ClientData, classes: int, trigger: Trigger | None) -> ClientData:
    """A malicious client's data; its test set is as it was.

    With label-flip no label stays. With backdoor a share of every batch, the first samples, have the trigger and its
    label (Bagdasaryan et al. 2020, section 4.2).
    """

    def changed(batch: Batch) -> Batch:
        if trigger is None:
            return replace(batch, y=flipped(batch.y, classes))
        count = math.ceil(attack.poisoned_share * len(batch) - 1e-9)
        images, labels = batch.x.clone(), batch.y.clone()
        images[:count] = trigger.stamped(images[:count])
        labels[:count] = trigger.target
        return Batch(images, labels)

    if attack.kind != "label-flip" and trigger is None:
        return data
    return replace(data, train=ChangedSamples(data.train, changed))


def sent(attack: Attack, delta: Vector, task: ClientTask) -> Vector:
    """What a malicious client sends in the place of its change [d] where it knows no other's."""
    strength = _strength(attack, 1.0)
    if attack.kind == "backdoor":  # model replacement (Bagdasaryan et al. 2020, Eq. 3)
        return np.asarray(delta * np.float32(strength))
    if attack.kind == "sign-flip":
        return np.asarray(delta * np.float32(-strength))
    if attack.kind == "gaussian":
        draws = seeds.numpy_generator(task.seed, "attack noise", task.round, task.client)
        return draws.standard_normal(delta.size, np.float32) * np.float32(strength)
    return delta


def forged(attack: Attack, honest: Sequence[Vector], attackers: int) -> Vector | None:
    """What all malicious clients of a server step send that know the honest updates, at least one [d].

    ALIE (Baruch et al. 2019, A little is enough, Algorithm 3): μ − z σ, from mean and deviation of every coordinate
    over the honest updates; z is 1.5 as in ByzFL, or :func:`paper_deviations`, where these updates may allow none:
    None. IPM (Xie et al. 2020, Fall of empires): −ε μ.
    """
    if attack.kind == "ipm":
        factor = _strength(attack, 0.5)
        return weighted_sum(honest, [-factor / len(honest)] * len(honest))
    z = deviations(attack, len(honest) + attackers, attackers)
    if z is None:
        return None
    result: Any = np.empty_like(honest[0])
    for start in range(0, result.size, BLOCK):
        block = np.array([vector[start : start + BLOCK] for vector in honest], np.float64)
        result[start : start + BLOCK] = block.mean(axis=0) - z * block.std(axis=0)
    return np.asarray(result)


def deviations(attack: Attack, updates: int, attackers: int) -> float | None:
    """ALIE's z in a server step of this many updates, of which ``attackers`` are malicious; None: there is none."""
    return paper_deviations(updates, attackers) if attack.strength == "paper" else _strength(attack, 1.5)


def paper_deviations(updates: int, attackers: int) -> float | None:
    """z with Φ(z) = (n − f − s) / (n − f), s = ⌊n/2⌋ + 1 − f (Baruch et al. 2019, Algorithm 3).

    None where z ≤ 0, which is no attack (n = 10 and f = 2, and below one malicious client in ten), and where the
    malicious clients are a majority alone, s ≤ 0, so that any z would do.
    """
    supporters = updates // 2 + 1 - attackers
    honest = updates - attackers
    if supporters <= 0 or 2 * (honest - supporters) <= honest:
        return None
    return NormalDist().inv_cdf((honest - supporters) / honest)


def check_strength(attack: Attack, clients: int, malicious_clients: int, steps: Sequence[int]) -> None:
    """ConfigError where planned server steps leave nothing of an attack that knows all honest updates.

    Args:
        attack: the run's.
        clients: number of clients that take part.
        malicious_clients: how many of them are malicious.
        steps: numbers of updates that server steps are planned to take, ascending.
    """
    if attack.omniscient and steps[-1] == 1:
        raise ConfigError(
            f"attack.kind: {attack.kind} is made from the honest updates of the same server step, and here a step "
            "takes one update. Raise schedule.sampling_rate or timing.buffer, or attack.kind sign-flip."
        )
    if attack.strength != "paper":
        return
    for updates in steps:
        attackers = planned_attackers(updates, clients, malicious_clients)
        if paper_deviations(updates, attackers) is None:
            raise ConfigError(
                f"attack.strength: with {updates} updates in a server step, {attackers} of them malicious, the paper's "
                "z of alie is not above 0, or nothing bounds it, so that there is no attack. Give a number, 1.5 say, "
                "or change attack.malicious_share or schedule.sampling_rate."
            )


def planned_attackers(updates: int, clients: int, malicious_clients: int) -> int:
    """How many of a server step's updates are malicious ones on average, at least one."""
    return max(1, round(updates * malicious_clients / clients))


def strength_note(attack: Attack, clients: int, malicious_clients: int, steps: Sequence[int]) -> str:
    """A sentence on ALIE's z in this run; empty with other attacks. Arguments as for :func:`check_strength`."""
    if attack.kind != "alie":
        return ""
    updates = steps[-1]
    attackers = planned_attackers(updates, clients, malicious_clients)
    note = f"attack.kind alie sends μ − z σ of the honest updates, z = {deviations(attack, updates, attackers):.4g}"
    return f"{note}: the paper's for {updates} updates, {attackers} malicious" if attack.strength == "paper" else note


def _strength(attack: Attack, default: float) -> float:
    return attack.strength if isinstance(attack.strength, (int, float)) else default
