"""The code of a run for a cluster that is joined from outside, whose nodes may have another version of it or none."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from raysim.config.run_config import classes_of

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig

OWN = ("raysim", "actors", "aggregators", "workloads")


def modules(config: RunConfig) -> list[str]:
    """Folders and files of Python code that a run needs: raysim's packages, and those of a user's own classes."""
    owners = (cls.__module__.partition(".")[0] for cls in classes_of(config).values())
    return [_place(name) for name in dict.fromkeys([*OWN, *owners]) if name != "__main__"]


def _place(name: str) -> str:
    """A package's folder, or the file of a single module."""
    module = import_module(name)
    paths = list(getattr(module, "__path__", ()))
    return str(Path(paths[0] if paths else str(module.__file__)))
