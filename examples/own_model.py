"""A model of one's own: any torch module, made for the inputs of the data.

python -m raysim.launch --method fedavg --workload digits --model examples.own_model:Narrow --width 16
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from raysim.workloads.federated_data import InputSpec
from raysim.workloads.option_types import Help, PositiveInt

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Narrow:
    """Two hidden layers of few units with tanh; its fields are the options."""

    width: Annotated[PositiveInt, Help("units of each hidden layer")] = 8

    def build(self, inputs: InputSpec) -> nn.Module:
        """A new network for inputs of ``inputs.input_shape``; torch's generator has been seeded."""
        from torch import nn  # a run's options are read without torch

        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(inputs.input_shape), self.width),
            nn.Tanh(),
            nn.Linear(self.width, self.width),
            nn.Tanh(),
            nn.Linear(self.width, inputs.classes),
        )
