"""Source and digest of code that was given as objects: modules, functions and classes of a script or a notebook.

A digest covers the values that an object holds too (:func:`held_values`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from itertools import chain
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
    if isinstance(code, functools.partial):
        return source_of(code.func)
    if not isinstance(code, type):  # of an object the source of its class
        return _byte_code(code) if hasattr(code, "__code__") or is_installed(type(code)) else source_of(type(code))
    parts = (getattr(value, "__func__", getattr(value, "fget", value)) for value in vars(code).values())
    functions = [part for part in parts if inspect.isfunction(part)]
    try:  # of a class in a notebook cell, Python finds the functions alone
        bodies = [inspect.getsource(function) for function in functions]
    except (OSError, TypeError):
        bodies = [f"{function.__name__} {_byte_code(function)}" for function in functions]
    bases = ", ".join(base.__qualname__ for base in code.__bases__)
    return f"class {code.__qualname__}({bases}):\n" + "\n".join(bodies)


def identity_of(code: Any) -> str:
    """Parts of a class, function or object that go into a digest: its source, and the values that it holds.

    A function holds its defaults and what it took from around it, an object its attributes. The line of a lambda may
    hold anything else, the number of rounds say: of it the byte code counts.
    """
    text = _byte_code(code) if getattr(code, "__name__", "") == "<lambda>" else source_of(code)
    around = [*(getattr(code, "__defaults__", None) or ())]
    for cell in getattr(code, "__closure__", None) or ():
        with suppress(ValueError):  # not filled yet
            around.append(cell.cell_contents)
    around += [code.__self__] if inspect.ismethod(code) else []
    is_object = not (inspect.isroutine(code) or isinstance(code, type))
    held = [*_attributes(code, ())] if is_object else [text for value in around for text in held_values(value)]
    return "\n".join([text, *held])


def held_values(value: Any, above: tuple[int, ...] = (), *, tensors: bool = True) -> Iterator[str]:
    """The plain values in a value, as text: numbers, texts, paths, and tensors and arrays by their bytes.

    Also those in lists, dicts and sets, and in attributes of objects of one's own. Of functions and classes the names
    count, and of other objects (of Python's own library, an open file say) their class alone.

    Args:
        above: identities of the objects that it stands in, which are not gone through again.
        tensors: whether the bytes of tensors and arrays count, or their types and shapes alone.
    """
    import numpy as np
    import torch

    if value is None or isinstance(value, str | bytes | int | float | complex | Enum | torch.dtype | torch.device):
        yield repr(value)
    elif isinstance(value, os.PathLike):
        yield os.fspath(value)
    elif isinstance(value, torch.Tensor):
        yield f"{value.dtype} {tuple(value.shape)}"
        if tensors and value.layout == torch.strided and not value.is_meta:
            yield _digest(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, np.ndarray | np.generic):
        yield f"{value.dtype} {value.shape}"
        if tensors and value.dtype != object:
            yield _digest(value.tobytes())
    elif inspect.isroutine(value) or isinstance(value, type):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    elif id(value) not in above:
        yield from _inside(value, (*above, id(value)), tensors=tensors)


def _inside(value: Any, above: tuple[int, ...], *, tensors: bool) -> Iterator[str]:
    """The values in a list, a dict, a set or an object."""
    import torch

    parts = functools.partial(held_values, above=above, tensors=tensors)
    yield type(value).__qualname__
    if isinstance(value, functools.partial):
        yield from (text for each in (value.func, value.args, value.keywords) for text in parts(each))
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for each in pair for text in parts(each))
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in parts(each))
    elif isinstance(value, set | frozenset):
        yield from sorted("\n".join(parts(each)) for each in value)
    elif isinstance(value, torch.nn.Module) or not is_installed(type(value)):
        yield from _attributes(value, above, tensors=tensors)


def _attributes(value: Any, above: tuple[int, ...], *, tensors: bool = True) -> Iterator[str]:
    """The attributes of an object; of a module those of its parts, with their buffers, without what torch keeps."""
    import torch

    if isinstance(value, torch.nn.Module):
        usual = vars(torch.nn.Module())
        for place, part in value.named_modules():
            tensors_of = chain(part.named_parameters(recurse=False), part.named_buffers(recurse=False))
            own = {**vars(part), **dict(tensors_of)}  # buffers that no state holds too
            for name in sorted(own.keys() - usual.keys()):
                yield f"{place}.{name}"
                yield from held_values(own[name], (*above, *map(id, value.modules())), tensors=tensors)
    elif isinstance(value, functools.partial):
        yield from _inside(value, (*above, id(value)), tensors=tensors)
    else:
        for name, own in sorted({**_in_slots(value), **getattr(value, "__dict__", {})}.items()):
            yield name
            yield from held_values(own, (*above, id(value)), tensors=tensors)


def _in_slots(value: Any) -> dict[str, Any]:
    """The attributes that an object's classes keep in ``__slots__``."""
    slots = chain.from_iterable(
        ((name, held) for name, held in vars(cls).items() if inspect.ismemberdescriptor(held))
        for cls in type(value).__mro__
        if not is_installed(cls)
    )
    return {name: held.__get__(value) for name, held in slots if hasattr(value, name)}


def own_classes(module: torch.nn.Module) -> list[type[Any]]:
    """The classes of a module and its parts that do not come with an installed package, each once."""
    classes = dict.fromkeys(base for part in module.modules() for base in type(part).__mro__)
    return [cls for cls in classes if cls.__module__.partition(".")[0] not in INSTALLED and cls is not object]


def is_installed(cls: type) -> bool:
    """Whether a class comes with an installed package, or with Python."""
    package = cls.__module__.partition(".")[0]
    return package in INSTALLED or (package in sys.stdlib_module_names and package != "__main__")


def module_digest(module: torch.nn.Module, sources: Iterable[str], *, values: bool) -> str:
    """SHA-256 of a module's sources, structure and attributes, and with ``values`` of what its tensors hold."""
    found = hashlib.sha256("\n".join(sources).encode())
    found.update(repr(module).encode())
    found.update("\n".join(_attributes(module, (), tensors=values)).encode())
    return found.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
            yield _text(constant)


def _text(constant: object) -> str:
    """A constant of code as text; that of a set, whose order is another one in each process, is sorted."""
    if isinstance(constant, frozenset):
        return f"{{{', '.join(sorted(map(_text, constant)))}}}"
    return f"({', '.join(map(_text, constant))})" if isinstance(constant, tuple) else repr(constant)
