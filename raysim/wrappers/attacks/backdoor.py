"""A white square that the model is to give one label, and updates that replace the model by the attackers'.

Source: Gu et al. 2017, BadNets (arXiv 1708.06733), the square; Bagdasaryan et al. 2020, How to backdoor federated
learning (arXiv 1807.00459), section 4.2 (a share of every batch) and Eq. 3 (model replacement).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from raysim.errors import ConfigError
from raysim.method import ClientTask, Module, Tensor, Vector
from raysim.rounding import rounded_up
from raysim.workloads.federated_data import Batch, ChangedSamples, ClientData, Federation, Samples, distinct_input_specs
from raysim.workloads.metrics import EvaluationSums, evaluate
from raysim.wrappers.attacks._attacker import SUCCESS, Attacker


@dataclass(frozen=True)
class Trigger:
    """A square of white pixels in the lower right corner of an image."""

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


@dataclass(frozen=True)
class Backdoor(Attacker):
    """For images whose pixels have a largest value."""

    target_label: int
    patch: int
    poisoned_share: float
    strength: float = 1.0
    trigger: Trigger | None = None
    """Known once the attack is fitted to the data."""
    columns: ClassVar[tuple[str, ...]] = (SUCCESS,)

    def check(self, federation: Federation) -> None:
        """ConfigError for data that have no images, or images that this trigger and label do not fit."""
        if not (hasattr(federation, "mean") and hasattr(federation, "deviation")):
            raise ConfigError(
                f"attack.kind: backdoor needs images with a known largest value, and {federation.name} has none. Take "
                "another attack, or an image workload such as cifar10 or digits."
            )
        for task in distinct_input_specs(federation):
            if self.target_label >= task.classes:
                raise ConfigError(
                    f"attack.target_label: {self.target_label} is no class of {federation.name}. Allowed: 0 to "
                    f"{task.classes - 1}."
                )
            largest = min(task.input_shape[1:]) - 1
            if self.patch > largest:
                raise ConfigError(
                    f"attack.patch: {self.patch} pixels would cover an image of {federation.name}. Allowed: 1 to "
                    f"{largest}."
                )

    def fitted(self, federation: Federation) -> Backdoor:
        """With the trigger, which is as white as these images can be."""
        white = [(1 - float(m)) / float(d) for m, d in zip(federation.mean, federation.deviation, strict=True)]  # type: ignore[attr-defined]
        return replace(self, trigger=Trigger(self.patch, tuple(white), self.target_label))

    def poisoned(self, data: ClientData, classes: int) -> ClientData:
        """A share of every batch, the first samples, have the trigger and its label."""
        trigger = self.trigger
        assert trigger is not None, "a worker's attack is fitted to its data"

        def changed(batch: Batch) -> Batch:
            count = rounded_up(self.poisoned_share, len(batch))
            images, labels = batch.x.clone(), batch.y.clone()
            images[:count] = trigger.stamped(images[:count])
            labels[:count] = trigger.target
            return Batch(images, labels)

        return replace(data, train=ChangedSamples(data.train, changed))

    def sent(self, delta: Vector, task: ClientTask) -> Vector:
        """The change times strength."""
        return np.asarray(delta * np.float32(self.strength))

    def further(self, module: Module, samples: Samples, batch_size: int, classes: int) -> Mapping[str, EvaluationSums]:
        """On test samples of other classes with the trigger: how many are given its label."""
        assert self.trigger is not None, "a worker's attack is fitted to its data"
        return {SUCCESS: triggered(module, samples, self.trigger, batch_size, classes)}


def triggered(module: Module, samples: Samples, trigger: Trigger, batch_size: int, classes: int) -> EvaluationSums:
    """Evaluation on test samples of other classes with the trigger; its accuracy is the success of the attack."""

    def batches() -> Iterator[Batch]:
        for batch in samples.batches(batch_size):
            others = batch.y != trigger.target
            if others.any():
                yield Batch(trigger.stamped(batch.x[others]), batch.y[others].fill_(trigger.target))

    return evaluate(module, batches(), classes)


KIND = Backdoor
