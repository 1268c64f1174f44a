"""The optimizers have the bits of torch's classes, and do not load its compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from raysim.config.sections import Training
from raysim.training.optimizers import make

SETTINGS = [
    Training(learning_rate=0.1),
    Training(learning_rate=0.1, momentum=0.9),
    Training(learning_rate=0.1, momentum=0.5, weight_decay=0.01),
    Training(optimizer="adam", learning_rate=0.01),
    Training(optimizer="adam", learning_rate=0.01, weight_decay=0.1),
    Training(optimizer="adamw", learning_rate=0.01),
    Training(optimizer="adamw", learning_rate=0.01, weight_decay=0.1),
]


def torchs_own(parameters: list[torch.nn.Parameter], training: Training) -> Any:
    options: dict[str, Any] = {"lr": training.learning_rate, "weight_decay": training.weight_decay}
    if training.optimizer == "adam":
        return torch.optim.Adam(parameters, **options)
    if training.optimizer == "adamw":
        return torch.optim.AdamW(parameters, **options)
    return torch.optim.SGD(parameters, momentum=training.momentum, **options)


@pytest.mark.parametrize("anew", [0, 3], ids=["in one go", "made anew from its state"])
@pytest.mark.parametrize("training", SETTINGS)
def test_ten_steps_have_the_bits_of_torchs_own_optimizer(training: Training, anew: int) -> None:
    start = [torch.randn(5, generator=torch.Generator().manual_seed(1)), torch.randn(3)]
    ours, theirs = ([torch.nn.Parameter(part.clone()) for part in start] for _ in range(2))
    mine, reference = make(ours, training, training.learning_rate), torchs_own(theirs, training)
    for step in range(10):
        if anew and step % anew == 0:
            state = mine.state()
            mine = make(ours, training, training.learning_rate)
            mine.load(state)
        for left, right in zip(ours, theirs, strict=True):
            left.grad = torch.randn(left.shape)
            right.grad = left.grad.clone()
        mine.step()
        reference.step()
    assert all(torch.equal(left, right) for left, right in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], start[0])


def test_a_state_is_a_copy() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    optimizer = make([parameter], Training(optimizer="adam"), 0.1)
    optimizer.step()
    state = optimizer.state()
    before = {name: np.array(value) for name, value in state.items()}
    optimizer.load(state)
    optimizer.step()
    assert before.keys() == {"mean", "square", "steps"} and before["steps"] == 1
    assert all(np.array_equal(state[name], value) for name, value in before.items())
