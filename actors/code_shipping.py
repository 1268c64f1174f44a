"""The code of a run for a cluster that is joined from outside, whose nodes may have another version of it or none."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.run_config import classes_of

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


def modules(config: RunConfig) -> list[str]:
    """Folders and files of Python code that a run needs: raysim's package, and those of a user's own code.

    That is the modules of own methods, workloads and models, and of the model, the loss and the metrics that were given
    in Python, but for installed packages, which the nodes must have. What is of ``__main__`` travels by value.
    """
    owners = [cls.__module__ for cls in classes_of(config).values()]
    owners += [name for name in map(_module_of, _given(config)) if not _is_installed(name)]
    names = dict.fromkeys(["raysim", *(name.partition(".")[0] for name in owners)])
    return [_place(name) for name in names if name != "__main__"]


def _given(config: RunConfig) -> Iterator[Any]:
    """The code that was given to ``raysim.run`` as objects (workloads/given/given_data.py)."""
    held: Any = getattr(config.model, "held", None)
    loss, metrics = getattr(config.workload, "functions", (None, {}))
    is_module = hasattr(held, "named_modules") and not isinstance(held, type)
    parts = [type(part) for part in held.modules()] if is_module else [held]
    yield from (code for code in (*parts, loss, *metrics.values()) if code is not None)


def _module_of(code: Any) -> str:
    """The module that defines a class or function, or an object's class."""
    return str(code.__module__ if hasattr(code, "__qualname__") else type(code).__module__)


def _is_installed(name: str) -> bool:
    if name == "__main__":
        return False
    paths = sysconfig.get_paths()
    installed = (Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
    file = getattr(import_module(name.partition(".")[0]), "__file__", None)
    return file is None or any(Path(file).is_relative_to(folder) for folder in installed)


def _place(name: str) -> str:
    """A package's folder, or the file of a single module."""
    module = import_module(name)
    paths = list(getattr(module, "__path__", ()))
    return str(Path(paths[0] if paths else str(module.__file__)))
