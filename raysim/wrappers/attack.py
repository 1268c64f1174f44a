"""The section ``attack``: which clients are malicious, what they train with, and what they send."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from aggregators.means import weighted_sum
from raysim import seeds
from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.method import ClientTask, Module, Tensor, Vector
from workloads.federated_data import Batch, ChangedSamples, ClientData, Federation, Samples, distinct_tasks
from workloads.metrics import EvaluationSums, evaluate
from workloads.objective import Objective, objective_of

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
    strength = 1.0 if attack.strength is None else attack.strength
    if attack.kind == "backdoor":  # model replacement (Bagdasaryan et al. 2020, Eq. 3)
        return np.asarray(delta * np.float32(strength))
    if attack.kind == "sign-flip":
        return np.asarray(delta * np.float32(-strength))
    if attack.kind == "gaussian":
        draws = seeds.numpy_generator(task.seed, "attack noise", task.round, task.client)
        return draws.standard_normal(delta.size, np.float32) * np.float32(strength)
    return delta


def forged(attack: Attack, honest: Sequence[Vector], attackers: int) -> Vector:
    """What all malicious clients of a round send that know the honest updates, at least one [d].

    ALIE (Baruch et al. 2019, A little is enough, Algorithm 3): μ − z σ, from mean and deviation of every coordinate
    over the honest updates, with Φ(z) = (n − f − s) / (n − f), s = ⌊n/2⌋ + 1 − f. IPM (Xie et al. 2020, Fall of
    empires): −ε μ.
    """
    count = len(honest) + attackers
    if attack.kind == "ipm":
        factor = 0.5 if attack.strength is None else attack.strength
        return weighted_sum(honest, [-factor / len(honest)] * len(honest))
    z = attack.strength
    if z is None:
        supporters = count // 2 + 1 - attackers
        reached = (count - attackers - supporters) / (count - attackers)
        z = NormalDist().inv_cdf(min(max(reached, 0.5), 1 - 1e-6))
    result: Any = np.empty_like(honest[0])
    for start in range(0, result.size, BLOCK):
        block = np.array([vector[start : start + BLOCK] for vector in honest], np.float64)
        result[start : start + BLOCK] = block.mean(axis=0) - z * block.std(axis=0)
    return np.asarray(result)
