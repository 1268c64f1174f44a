"""Source and digest of code that was given as objects: modules, functions and classes of a script or a notebook."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

INSTALLED = ("builtins", "torch", "torchvision", "torch_geometric", "raysim")
"""Packages whose source is not recorded: a run's environment.json names their versions."""


def source_of(code: Any) -> str:
    """The source of a class or function; of what a prompt defined, its functions' byte code."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        pass
    if not isinstance(code, type):
        return _byte_code(code)
    parts = (getattr(value, "__func__", getattr(value, "fget", value)) for value in vars(code).values())
    functions = [part for part in parts if inspect.isfunction(part)]
    try:  # of a class in a notebook cell, Python finds the functions alone
        bodies = [inspect.getsource(function) for function in functions]
    except (OSError, TypeError):
        bodies = [f"{function.__name__} {_byte_code(function)}" for function in functions]
    bases = ", ".join(base.__qualname__ for base in code.__bases__)
    return f"class {code.__qualname__}({bases}):\n" + "\n".join(bodies)


def identity_of(code: Any) -> str:
    """Parts of a class or function that go into a digest: its source, and numbers and texts it took from around it.

    The line of a lambda may hold anything else, the number of rounds say: of it the byte code counts.
    """
    text = _byte_code(code) if getattr(code, "__name__", "") == "<lambda>" else source_of(code)
    around = [*(getattr(code, "__defaults__", None) or ())]
    for cell in getattr(code, "__closure__", None) or ():
        with suppress(ValueError):  # not filled yet
            around.append(cell.cell_contents)
    plain = [repr(value) for value in around if isinstance(value, str | int | float | tuple | None)]
    return "\n".join([text, *plain])


def own_classes(module: torch.nn.Module) -> list[type[Any]]:
    """The classes of a module and its parts that do not come with an installed package, each once."""
    classes = dict.fromkeys(base for part in module.modules() for base in type(part).__mro__)
    return [cls for cls in classes if cls.__module__.partition(".")[0] not in INSTALLED and cls is not object]


def module_digest(module: torch.nn.Module, sources: Iterable[str], *, values: bool) -> str:
    """SHA-256 of a module's sources, of its structure, and with ``values`` of what its tensors hold."""
    found = hashlib.sha256("\n".join(sources).encode())
    found.update(repr(module).encode())
    for name, tensor in module.state_dict().items():
        found.update(f"{name} {getattr(tensor, 'dtype', '')} {getattr(tensor, 'shape', '')} ".encode())
        if values and hasattr(tensor, "detach"):
            found.update(tensor.detach().cpu().contiguous().float().numpy().tobytes())
    return found.hexdigest()


def _byte_code(function: Any) -> str:
    code = getattr(function, "__code__", None)
    if code is None:  # an object with __call__
        return repr(getattr(function, "__qualname__", type(function).__qualname__))
    return hashlib.sha256("\n".join(_parts(code)).encode()).hexdigest()


def _parts(code: CodeType) -> Iterator[str]:
    """The parts of a function's code, without the addresses of what is nested in it."""
    yield f"{code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        else:
            yield repr(constant)
