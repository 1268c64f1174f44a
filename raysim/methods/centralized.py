"""Training on the union of all clients' data: the yardstick, not a federated method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.method import Traits
from raysim.methods.fedavg import FedAvg


@dataclass(frozen=True)
class Centralized(FedAvg):
    """Centralized: one model trained on all clients' training data put together, for the same local epochs.

    Source: the "Centralized" column of FedRAD, Table 2. The engine pools the data (``Traits.pooled``); evaluation and
    checkpoints happen at the same rounds as in a federated run.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, pooled=True)


METHOD = Centralized
