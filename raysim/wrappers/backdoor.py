"""The attack ``backdoor``: images with a trigger that a model is to give one label, in training and in evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from raysim.errors import ConfigError
from workloads.federated_data import Batch, ChangedSamples, ClientData, Samples, distinct_tasks
from workloads.metrics import EvaluationSums, evaluate

if TYPE_CHECKING:
    import torch

    from raysim.config.wrappers import Attack
    from workloads.federated_data import Federation


@dataclass(frozen=True)
class Trigger:
    """A square of white pixels in the lower right corner of an image (Gu et al. 2017, BadNets, arXiv 1708.06733)."""

    size: int
    """Pixels of a side."""
    white: tuple[float, ...]
    """The largest value of a pixel, after normalization, of each channel."""
    target: int
    """The label that the attackers want."""

    def stamped(self, images: torch.Tensor) -> torch.Tensor:
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


def poisoned(data: ClientData, trigger: Trigger, share: float) -> ClientData:
    """A malicious client's data: a share of every batch, the first samples, have the trigger and its label.

    Source: Bagdasaryan et al. 2020, section 4.2.
    """

    def poison(batch: Batch) -> Batch:
        count = math.ceil(share * len(batch) - 1e-9)
        images, labels = batch.x.clone(), batch.y.clone()
        images[:count] = trigger.stamped(images[:count])
        labels[:count] = trigger.target
        return Batch(images, labels)

    return replace(data, train=ChangedSamples(data.train, poison))


def triggered(
    module: torch.nn.Module, samples: Samples, trigger: Trigger, batch_size: int, classes: int
) -> EvaluationSums:
    """Evaluation on test samples of other classes with the trigger; its accuracy is the success of the attack."""

    def batches() -> Iterator[Batch]:
        for batch in samples.batches(batch_size):
            others = batch.y != trigger.target
            if others.any():
                yield Batch(trigger.stamped(batch.x[others]), batch.y[others].fill_(trigger.target))

    return evaluate(module, batches(), classes)
