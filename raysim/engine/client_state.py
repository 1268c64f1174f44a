"""What a client keeps between its tasks: the method's own part, and what the engine keeps beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raysim.method import NOTHING, Vector


@dataclass(frozen=True)
class ClientState:
    """All that a client keeps; it travels and is saved as a whole. A method is given ``method`` and nothing else."""

    method: Any = None
    """What the method's ``init_client`` or last ``train`` returned."""
    private: Vector = field(default_factory=lambda: NOTHING)
    """The entries of its model that do not travel (:meth:`raysim.flat_model.FlatModel.take_kept`), where clients have
    different tasks and so share less than the method asks for; else empty."""
    optimizer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """With ``training.optimizer_state kept``: the optimizer's moments at the end of its last training, by phase and
    trained parameters (:func:`raysim.training.local_sgd.train_epochs`); empty before the first, and otherwise."""
