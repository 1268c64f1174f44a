"""Functions that numpy computes for torch where the caps of portable runs are set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from raysim import portable
from raysim.training import portable_functions

ROOT = Path(__file__).parents[3]
CHECK = """
import numpy as np, torch
from raysim.training.portable_functions import FUNCTIONS, take_over

values = torch.rand(40_001, generator=torch.Generator().manual_seed(0))
take_over(), take_over()  # the second time nothing is left to do
for name, function in FUNCTIONS.items():
    found = getattr(torch, name)(values)
    assert np.array_equal(found.numpy(), function(values.numpy())), name
    assert getattr(values.clone(), name + "_")().equal(found), name
    assert getattr(torch, name)(values, out=torch.empty(3)).equal(found), name
exact = np.sqrt(values.double().numpy()).astype(np.float32)
assert np.array_equal(values.sqrt().numpy(), exact) and np.array_equal(torch._foreach_sqrt([values])[0].numpy(), exact)
leaf = values.clone().requires_grad_()
(gradient,) = torch.autograd.grad(leaf.exp().sum(), leaf)
assert gradient.equal(values.exp())
assert torch.func.vmap(torch.tanh)(values[:6].view(2, 3)).equal(values[:6].tanh().view(2, 3))
images = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
assert images.sqrt().is_contiguous(memory_format=torch.channels_last)
assert values[:6].view(2, 3).t().exp().stride() == (1, 3)
assert torch.sqrt(torch.tensor(4)).equal(torch.tensor(2.0))
assert torch.sqrt(torch.tensor(2.0, dtype=torch.bfloat16)).equal(torch.tensor(2.0).sqrt().bfloat16())
assert torch.sqrt(torch.tensor(-1 + 0j)).equal(torch.tensor(1j))
assert torch.sqrt(torch.tensor(-1.0)).isnan() and torch.log(torch.zeros(())).isinf()
"""


def test_numpy_computes_them_in_every_form_where_the_caps_are_set() -> None:
    environment = {**os.environ, **portable.VARIABLES}
    subprocess.run([sys.executable, "-W", "ignore", "-c", CHECK], env=environment, cwd=ROOT, check=True)


def test_without_the_caps_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(next(iter(portable.VARIABLES)), raising=False)
    monkeypatch.setattr(portable_functions, "_registered", pytest.fail)
    portable_functions.take_over()
    assert torch.ones(2).sqrt().equal(torch.ones(2))
