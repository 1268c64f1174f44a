"""The section ``attack``: which clients are malicious, what they train with, and what they send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregators.means import weighted_sum
from raysim import seeds
from raysim.errors import ConfigError
from raysim.wrappers.backdoor import check_backdoor
from workloads.federated_data import ChangedSamples
from workloads.objective import objective_of

if TYPE_CHECKING:
    import torch

    from raysim.config.wrappers import Attack
    from raysim.method import ClientTask, Vector
    from workloads.federated_data import ClientData, Federation
    from workloads.objective import Objective

SUCCESS = "attack_success"
"""Column of the tables: the share of test samples that are given the label that the attackers want."""
BLOCK = 65_536
"""Entries whose deviations are computed at a time."""


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


def judged_by(attack: Attack, objective: Objective) -> Objective:
    """The objective, where labels are flipped with ``attack_success``: how often the attackers' label is predicted."""
    if attack.kind != "label-flip" or objective.kind != "classification":
        return objective
    return replace(objective, metrics={**objective.metrics, SUCCESS: attack_success})


def attack_success(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """1 for each sample that is given the label that malicious clients train it with [B]."""
    return (outputs.argmax(dim=1) == flipped(labels, outputs.shape[1])).double()


def flipped(labels: torch.Tensor, classes: int) -> torch.Tensor:
    """y + 1, the last class as 0: no label stays."""
    return (labels + 1) % classes


def poisoned(data: ClientData, classes: int) -> ClientData:
    """A malicious client's data, for label-flip; its test set is as it was."""
    train = ChangedSamples(data.train, lambda batch: replace(batch, y=flipped(batch.y, classes)))
    return replace(data, train=train)


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
