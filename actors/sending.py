"""Sending what a run is made of to Ray's processes: modules by name, and one sentence for what cannot be sent."""

from __future__ import annotations

import copyreg
import importlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

DEEPEST = 12
"""How many steps down, from an object to a part of it, what cannot be sent is looked for."""


def send_modules_by_name() -> None:
    """Let pickle send modules of a class of their own (``torch.classes``, ``torch.ops``) by name, as it does others.

    A function of ``__main__`` is sent by value, together with every imported module whose last name occurs in its code
    as any name: ``task.classes`` beside ``torch`` sends ``torch.classes`` along, which by itself no pickler takes. Call
    it in each process that sends code, once the code is there: what is imported later is not covered.
    """
    for cls in _module_classes(ModuleType):
        own = cls.__reduce__ is not object.__reduce__ or cls.__reduce_ex__ is not object.__reduce_ex__
        if not own and cls not in copyreg.dispatch_table:
            copyreg.pickle(cls, _reduced)


def check_sendable(config: RunConfig) -> None:
    """Check that all of a config can be sent; arrays and tensors, which always can, are not copied for it.

    Raises:
        ConfigError: it names the part that cannot, and who uses it.
    """
    send_modules_by_name()
    for kind, section in vars(config).items():
        name = getattr(section, "class_name", "") or getattr(section, "title", "") or type(section).__name__
        check_object(f"{kind} {name}", section)


def check_object(what: str, value: Any) -> None:
    """ConfigError unless an object can be sent; ``what`` is its name in the message."""
    reason = _failure(value)
    if not reason:
        return
    steps, found = _culprit(value, [], set())
    where = "".join(f"{step}, " for step in steps[-1:])
    raise ConfigError(
        f"{what}: {where or 'it, '}of type {type(found).__qualname__}, cannot be sent to Ray's processes ({reason}). "
        "Make it where it is used, in a function or in __init__ of a process's own object, or keep the run in this "
        'process: engine={"backend": "inline"}.'
    )


def _module_classes(cls: type[ModuleType]) -> Iterator[type[ModuleType]]:
    for below in type.__subclasses__(cls):
        yield below
        yield from _module_classes(below)


def _reduced(module: ModuleType) -> tuple[Any, ...] | str:
    """A module as its name, if it is found by that; else what pickle makes of any object."""
    name = getattr(module, "__name__", "")
    try:
        if name and _module_of(name) is module:
            return _module_of, (name,)
    except (ImportError, AttributeError):
        pass
    return object.__reduce_ex__(module, 4)


def _module_of(name: str) -> Any:
    """The module with a name; of one that only its parent knows (``torch.ops.aten``), the parent's attribute."""
    try:
        return importlib.import_module(name)
    except ImportError:
        first, *others = name.split(".")
        return reduce(getattr, others, importlib.import_module(first))


def _failure(value: Any) -> str:
    """Why an object cannot be sent; empty if it can."""
    import ray.cloudpickle as cloudpickle

    torch = sys.modules.get("torch")
    arrays = (np.ndarray, *((torch.Tensor,) if torch else ()))

    class Trial(cloudpickle.CloudPickler):  # type: ignore[name-defined,misc,unused-ignore]
        """Pickles all but arrays and tensors, for which it puts a mark."""

        def persistent_id(self, obj: Any) -> str | None:
            return "array" if isinstance(obj, arrays) else None

    pickler: Any = Trial
    try:
        pickler(io.BytesIO()).dump(value)
    except Exception as error:  # a user's own __reduce__ may raise anything
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def _culprit(value: Any, steps: list[str], seen: set[int]) -> tuple[list[str], Any]:
    """The smallest part of an object that cannot be sent, and the way to it, in words."""
    if len(steps) < DEEPEST:
        for step, part in _parts(value):
            if id(part) not in seen and _failure(part):
                return _culprit(part, [*steps, step], seen | {id(value)})
    return steps, value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Parts that an object is sent together with, each with its name."""
    if isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, MethodType):
        yield from (("its function", value.__func__), ("its object", value.__self__))
    elif isinstance(value, Mapping):
        yield from ((f"entry {key!r}", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"entry {number}", part) for number, part in enumerate(value))
    elif isinstance(value, type):
        for name, part in vars(value).items():
            yield f"attribute {name} of class {value.__qualname__}", getattr(part, "__func__", part)
    elif not isinstance(value, ModuleType | BuiltinFunctionType):
        for name, part in getattr(value, "__dict__", {}).items():
            yield f"attribute {name} of an object of {type(value).__qualname__}", part
        yield f"class {type(value).__qualname__}", type(value)


def _parts_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    from ray.cloudpickle.cloudpickle import _extract_code_globals

    find: Callable[[Any], Sequence[str]] = _extract_code_globals
    for name in find(function.__code__):
        if name in function.__globals__:
            yield f"{name}, a global that {function.__qualname__} uses", function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"{name}, which {function.__qualname__} takes from around it", cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield f"a default value of {function.__qualname__}", function.__defaults__
