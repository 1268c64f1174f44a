"""Training with every label y as y + 1, the last class as 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from raysim.errors import ConfigError
from raysim.method import Tensor
from raysim.workloads.federated_data import Batch, ChangedSamples, ClientData, Federation, objective_of
from raysim.workloads.objective import Objective
from raysim.wrappers.attacks._attacker import SUCCESS, Attacker


@dataclass(frozen=True)
class LabelFlip(Attacker):
    """It changes the data alone; the update is what the client trained."""

    changes_vectors: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = (SUCCESS,)

    def check(self, federation: Federation) -> None:
        """ConfigError for data without classes."""
        kind = objective_of(federation).kind
        if kind != "classification":
            raise ConfigError(
                f"attack.kind: label-flip needs data with a class for each sample, and this is {kind}. Take another "
                "attack."
            )

    def poisoned(self, data: ClientData, classes: int) -> ClientData:
        """No label stays."""

        def changed(batch: Batch) -> Batch:
            return replace(batch, y=flipped(batch.y, classes))

        return replace(data, train=ChangedSamples(data.train, changed))

    def objective(self, objective: Objective) -> Objective:
        """How often the attackers' label is predicted."""
        if objective.kind != "classification":
            return objective
        return replace(objective, metrics={**objective.metrics, SUCCESS: attack_success})


def attack_success(outputs: Tensor, labels: Tensor) -> Tensor:
    """1 for each sample that is given the label that malicious clients train it with [B]."""
    return (outputs.argmax(dim=1) == flipped(labels, outputs.shape[1])).double()


def flipped(labels: Tensor, classes: int) -> Tensor:
    """y + 1, the last class as 0: no label stays."""
    return (labels + 1) % classes


KIND = LabelFlip
