"""A torch module's class of one's own as a model that a config can name, ``--model package.module:Class``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from raysim.workloads.given.given_data import made, required_arguments

if TYPE_CHECKING:
    from torch import nn

    from raysim.workloads.federated_data import InputSpec


def is_module_class(found: object) -> bool:
    """Whether it is a class of torch modules; torch itself is not imported for the answer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(found, type) and issubclass(found, torch.nn.Module)


@cache
def options_of_module(module_class: type[Any]) -> type[Any]:
    """The dataclass of a model without options that makes this module, of no argument or of the inputs."""

    @dataclass(frozen=True)
    class Options:
        def check(self, inputs: InputSpec) -> None:
            required_arguments(module_class)

        def build(self, inputs: InputSpec) -> nn.Module:
            return made(module_class, inputs)

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):  # what a config calls it, and its help
        setattr(Options, name, getattr(module_class, name))
    return Options
