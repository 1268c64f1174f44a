"""Observers by name, as ``--observer`` gives them: trackers that come with raysim, and classes of a user's own."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from raysim.config import registry
from raysim.config.nearest import did_you_mean
from raysim.engine.observer import HEARD, Named, Observer
from raysim.errors import ConfigError, code_error

OPTION = "engine.observer"


def known() -> list[str]:
    """The names of the trackers: the files of ``raysim/monitor/trackers``."""
    trackers = importlib.import_module("raysim.monitor.trackers")
    return sorted(info.name for info in pkgutil.iter_modules(trackers.__path__))


def resolve(name: str) -> type[Any]:
    """The class of this name, or at ``package.module:Class``, which is imported.

    Raises:
        ConfigError: there is none, it is no observer, or the package that it hands runs to is not installed.
    """
    if ":" in name:
        found = registry.imported("observer", name, name)
        if not isinstance(found, type):
            raise ConfigError(f"{OPTION}: {name} is no class. Name a class that inherits from raysim.Observer.")
        missing = [function for function in HEARD if not callable(getattr(found, function, None))]
        if missing and not hasattr(found, "__getattr__"):
            raise ConfigError(
                f"{OPTION}: {name} has no function {missing[0]}. Let it inherit from raysim.Observer "
                "(docs/own-data.md, Observers)."
            )
        return found
    if name not in known():
        raise ConfigError(
            f"{OPTION}: {name!r} is not known.{did_you_mean(name, known())} Known: {', '.join(known())}; or "
            "package.module:Class for your own."
        )
    tracker: type[Any] = importlib.import_module(f"raysim.monitor.trackers.{name}").TRACKER
    found_spec = find_spec(tracker.package)
    if found_spec is None or found_spec.origin is None:  # a folder of that name is no package
        raise ConfigError(
            f"{OPTION}: the package {tracker.package} of {name} is not installed. Install it with pip install "
            f"{tracker.package}, or leave the observer out."
        )
    return tracker


def check(names: Sequence[str]) -> None:
    """ConfigError for the first name that no observer has, or twice the same."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ConfigError(f"{OPTION}: {name} is there twice.")
        resolve(name)


@contextmanager
def opened(names: Sequence[str], folder: Path) -> Iterator[list[Observer]]:
    """The observers of a run, made, and closed at its end.

    A class whose constructor takes an argument is given the run's folder, a ``pathlib.Path``; one that has a function
    ``close`` is told of the end.

    Raises:
        RaysimError: the constructor or ``close`` of one raises.
    """
    made: list[Named] = []
    try:
        for name in names:
            made.append(Named(_made(name, resolve(name), folder)))
        yield [*made]
    finally:
        for observer in made:
            if callable(getattr(observer.observer, "close", None)):
                observer.tell("close")


def _made(name: str, cls: type[Any], folder: Path) -> Any:
    try:
        parameters = inspect.signature(cls).parameters.values()
        takes = any(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
        return cls(folder) if takes else cls()
    except (Exception, SystemExit) as error:
        raise code_error(f"observer {name}", error, traceback.format_exc()) from error
