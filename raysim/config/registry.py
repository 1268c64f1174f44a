"""Names of methods, workloads and models, and the classes behind them; listing names imports none of those classes.

A method is found by its file: every module of ``raysim/methods/`` whose name does not start with an underscore is one,
its public name is the module's with hyphens, and it defines ``METHOD``, a frozen dataclass; ``FAMILIES`` names those
that define several. Workloads and models come from the tables ``WORKLOADS`` and ``MODELS``, name → ``module:Class``.
For all three, ``package.module:Class`` also names a user's own class from anywhere on the import path.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import traceback
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Literal

from raysim.config.nearest import did_you_mean
from raysim.errors import ConfigError, reason_of

Kind = Literal["method", "workload", "model"]
KINDS: tuple[Kind, ...] = ("method", "workload", "model")
Classes = Mapping[str, type[Any]]
"""Kind → class that Python code gave as such, in the place of its name."""
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "fedopt": {"fedavgm": "FedAvgM", "fedadagrad": "FedAdagrad", "fedadam": "FedAdam", "fedyogi": "FedYogi"}
}
"""Modules of ``raysim/methods`` with several methods: public name → class."""
NO_CLASSES: Classes = MappingProxyType({})
GIVEN: dict[Kind, dict[str, str]] = {
    "method": {},
    "workload": {
        "given": "raysim.workloads.given.given_data:GivenData",
        "given-graphs": "raysim.workloads.graphs.given_graphs:GivenGraphs",
    },
    "model": {"given": "raysim.workloads.given.given_data:GivenModel"},
}
"""Stand-ins for data and models that Python code hands over (raysim/running/python_objects.py), by name; not listed,
as no name alone can bring them."""


def known(kind: Kind) -> dict[str, str]:
    """Public name → ``module:attribute`` of everything that comes with raysim."""
    if kind == "method":
        return dict(_methods_in(tuple(importlib.import_module("raysim.methods").__path__)))
    if kind == "workload":
        return dict(importlib.import_module("raysim.workloads.registry").WORKLOADS)
    return dict(importlib.import_module("raysim.workloads.models").MODELS)


@functools.cache
def _methods_in(folders: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for info in pkgutil.iter_modules(folders):
        if not info.name.startswith("_"):
            names = FAMILIES.get(info.name, {info.name.replace("_", "-"): "METHOD"})
            found |= {name: f"raysim.methods.{info.name}:{attribute}" for name, attribute in names.items()}
    return dict(sorted(found.items()))


def resolve(kind: Kind, name: str) -> type[Any]:
    """The dataclass behind a public name or ``package.module:Class``; ConfigError if there is none."""
    table = known(kind)
    location = name if ":" in name else {**table, **GIVEN[kind]}.get(name) or table.get(name.replace("_", "-"))
    if location is None:
        own = (
            f"{_module_of(name)}:Class for a class of this file"
            if name.endswith(".py")
            else "package.module:Class for your own"
        )
        raise ConfigError(f"Unknown {kind} {name!r}.{did_you_mean(name, table)} Known: {', '.join(table)}; or {own}.")
    return _load(kind, name, location)


def owners(path: str) -> tuple[Kind, list[str]] | None:
    """The kind and the names of what has an option (``mu``, ``method.mu``); None if nothing in raysim has it."""
    section, _, wanted = path.rpartition(".")
    for kind in KINDS:
        if section in ("", kind):
            names = [name for name in known(kind) if any(f.name == wanted for f in fields(resolve(kind, name)))]
            if names:
                return kind, names
    return None


def owners_hint(path: str, prefix: str) -> str:
    """A sentence that names the methods, workloads or models that have an option which a run's have not."""
    found = owners(path)
    if found is None:
        return ""
    kind, names = found
    if len(names) == 1:
        return f" {prefix}{path} belongs to {names[0]}: choose --{kind} {names[0]} or leave it out."
    listed = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
    return f" {prefix}{path} belongs to {kind}s {listed}: choose one of them with --{kind} or leave it out."


def public_name(kind: Kind, instance: object) -> str:
    """The name that ``resolve`` turns into the class of ``instance`` again."""
    return class_name(kind, type(instance))


def class_name(kind: Kind, cls: type[Any]) -> str:
    """The name that ``resolve`` turns into this class again."""
    location = f"{cls.__module__}:{cls.__qualname__}"
    if kind == "method":
        package, _, module = cls.__module__.rpartition(".")
        if package == "raysim.methods" and getattr(importlib.import_module(cls.__module__), "METHOD", None) is cls:
            return module.replace("_", "-")
    names = {**known(kind), **GIVEN[kind]}
    return next((name for name, target in names.items() if target == location), location)


def names_of(classes: Classes) -> dict[str, object]:
    """The names of classes as a config has them, ``method.name`` → name."""
    return {f"{kind}.name": class_name(kind, classes[kind]) for kind in KINDS if kind in classes}


def imported(kind: str, name: str, location: str) -> object:
    """The object at ``module:attribute``.

    Args:
        kind: the noun for it, for messages.
        name: the name that was given for it; its location, of a user's own.

    Raises:
        ConfigError: there is none.
    """
    module_name, _, attribute = location.partition(":")
    if module_name.endswith(".py"):
        right = f"{_module_of(module_name)}:{attribute}"
        raise ConfigError(f"{kind} {name!r}: a class is named by its module, not by its file: write {right}.")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module of a user's own may raise anything
        if name != location and isinstance(error, ModuleNotFoundError):
            raise  # raysim's own modules are there: what they import is not (raysim/launch.py says what to do)
        reason = str(error) if isinstance(error, (ImportError, ValueError, TypeError)) else _where(error)
        if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
            reason += f"; it was looked for in {Path.cwd()} and on the import path (PYTHONPATH)"
        raise ConfigError(f"{kind} {name!r}: cannot import {module_name!r}: {reason}") from error
    found: object = module
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        own = [
            key for key, value in vars(module).items() if isinstance(value, type) and value.__module__ == module_name
        ]
        place = getattr(module, "__file__", None) or "it has no file"
        listing = f" Its classes: {', '.join(own[:6])}{', …' * (len(own) > 6)}." if own else ""
        raise ConfigError(
            f"{kind} {name!r}: {module_name} ({place}) does not define {attribute!r}."
            f"{did_you_mean(attribute, own)}{listing}"
        ) from error
    return found


def _module_of(file: str) -> str:
    """The module that a file is, from the present folder, or from its own if it is none below."""
    path = PurePath(file).with_suffix("")
    return path.name if path.is_absolute() or ".." in path.parts else ".".join(path.parts)


def _load(kind: Kind, name: str, location: str) -> type[Any]:
    found = imported(kind, name, location)
    if kind == "model" and not is_dataclass(found):
        from raysim.workloads.models.own_module import is_module_class, options_of_module

        if is_module_class(found):
            found = options_of_module(found)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise ConfigError(f"{kind} {name!r}: {location} is not a dataclass; its fields would be the options.")
    return found


def _where(error: BaseException) -> str:
    """An error with the file and line that raised it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    file, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (place.filename, place.lineno)
    words = f"SyntaxError: {error.msg}" if isinstance(error, SyntaxError) else reason_of(error)
    return f"{words} ({file}, line {line})"
