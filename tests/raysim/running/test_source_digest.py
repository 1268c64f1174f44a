from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from raysim.running.source_digest import identity_of, module_digest, own_classes, source_of
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


def test_only_classes_of_ones_own_are_recorded() -> None:
    assert own_classes(torch.nn.Sequential(seeded(), torch.nn.ReLU())) == [Net]
