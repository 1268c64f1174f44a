from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysim.running.source_digest import held_values, identity_of, module_digest, own_classes, source_of
from tests.own_data import Net, seeded


def made(code: str, name: str) -> Any:
    """What a prompt defines, without a file."""
    names: dict[str, Any] = {"__name__": "__main__", "torch": torch}
    exec(code, names)
    return names[name]


def test_the_source_is_found_and_of_a_prompt_the_byte_code() -> None:
    assert source_of(Net).startswith("class Net(torch.nn.Module):")
    one, same, other = (
        made(f"class Typed(torch.nn.Module):\n  def forward(self, x):\n    return x * {factor}", "Typed")
        for factor in (2, 2, 3)
    )
    assert source_of(one) == source_of(same) != source_of(other)
    assert source_of(one).startswith("class Typed(Module):\nforward ")


SETS = """
from raysim.running.source_digest import source_of
exec("def known(x): return x in {'alpha', 'beta', 'gamma', 'delta', 'epsilon'} or x == ('zeta', 1)")
print(source_of(known))
"""


def test_a_set_in_code_without_a_file_is_the_same_in_every_process() -> None:
    found = set[str]()
    for seed in ("1", "2", "3"):
        chosen = {**os.environ, "PYTHONHASHSEED": seed}
        found.add(subprocess.run([sys.executable, "-c", SETS], env=chosen, capture_output=True, text=True).stdout)
    assert len(found) == 1 and len(found.pop()) == 65  # a digest in hexadecimals, and the line's end


def test_a_lambda_is_told_by_what_it_does_and_not_by_its_line() -> None:
    def above(level: float) -> Callable[[float], bool]:
        return lambda value: value > level

    first = identity_of(lambda value: value > 1), 8
    again = identity_of(lambda value: value > 1), 9
    assert first[0] == again[0] != identity_of(lambda value: value > 2)
    assert identity_of(above(0.5)) == identity_of(above(0.5)) != identity_of(above(0.6))


def test_the_digest_of_a_module_covers_source_structure_and_values() -> None:
    def digest(module: torch.nn.Module, source: str = "", values: bool = True) -> str:
        return module_digest(module, [source], values=values)

    assert digest(seeded()) == digest(seeded()) != digest(seeded(1))
    assert digest(seeded(), values=False) == digest(seeded(1), values=False)
    assert digest(seeded()) != digest(seeded(), "class Net: ...")
    assert digest(torch.nn.ReLU()) != digest(torch.nn.Tanh())


class Weighted:
    """A loss with an attribute of any kind."""

    def __init__(self, weight: Any = 2.0) -> None:
        self.weight, self.again = weight, self

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return ((outputs - labels) ** 2).mean()


@dataclass(frozen=True, slots=True)
class Slotted:
    """A loss with its value in a slot."""

    weight: Any


class Masked(torch.nn.Module):
    """A module whose attribute and mask are in no state."""

    def __init__(self, scale: Any = 1.0, mask: float = 1.0) -> None:
        super().__init__()
        self.layer, self.scale = torch.nn.Linear(2, 1), scale
        self.register_buffer("mask", torch.full((2,), mask), persistent=False)


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (2.0, 2.0, 3.0),
        ("mean", "mean", "sum"),
        ({"w": [1, 2]}, {"w": [1, 2]}, {"w": [1, 3]}),
        ({"a", "b", "c"}, {"c", "b", "a"}, {"a", "b"}),
        (torch.ones(3), torch.ones(3), torch.zeros(3)),
        (torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0)),
        (np.arange(3), np.arange(3), np.arange(1, 4)),
        (Path("a"), Path("a"), Path("b")),
        (torch.relu, torch.relu, torch.tanh),
        (Weighted(1), Weighted(1), Weighted(2)),
        (Slotted(1), Slotted(1), Slotted(2)),
        (Masked(), Masked(), Masked(2.0)),
    ],
)
def test_an_object_is_told_by_the_values_of_its_attributes(one: Any, same: Any, other: Any) -> None:
    for module in [each for each in (one, same, other) if isinstance(each, torch.nn.Module)]:
        module.load_state_dict({name: torch.ones_like(each) for name, each in module.state_dict().items()})
    assert identity_of(Weighted(one)) == identity_of(Weighted(same)) != identity_of(Weighted(other))
    assert identity_of(Weighted(one).__call__) != identity_of(Weighted(other).__call__)
    assert identity_of(partial(Weighted, one)) == identity_of(partial(Weighted, same))
    assert identity_of(partial(Weighted, one)) != identity_of(partial(Weighted, other))


def test_of_objects_of_other_packages_the_class_counts() -> None:
    """Their attributes may be another in every process."""
    assert [*held_values(random.Random(1))] == [*held_values(random.Random(2))] == ["Random"]
    assert "Weighted" in source_of(Weighted(2.0)) and "labels" in source_of(Weighted(2.0))


def test_a_module_is_told_by_its_attributes_and_by_buffers_that_no_state_holds() -> None:
    def digest(*options: Any, values: bool = True) -> str:
        torch.manual_seed(0)
        return module_digest(Masked(*options), [], values=values)

    assert digest() == digest(1.0) != digest(2.0) and digest(1.0, 2.0) != digest()
    assert digest(2.0, values=False) != digest(values=False) == digest(1.0, 2.0, values=False)
    smooth = [identity_of(torch.nn.CrossEntropyLoss(label_smoothing=share)) for share in (0.0, 0.1)]
    assert smooth[0] != smooth[1]


def test_only_classes_of_ones_own_are_recorded() -> None:
    assert own_classes(torch.nn.Sequential(seeded(), torch.nn.ReLU())) == [Net]
