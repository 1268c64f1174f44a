"""Federated learning, simulated in parallel on Ray.

``raysim.run("fedavg", model=…, clients=…)`` runs a method and returns its tables and its trained model, ``python -m
raysim.launch`` does the same from a shell, and ``raysim.split(data)`` cuts a data set over clients.
``raysim.load_model(folder)`` gives the model of an earlier run. The other names are what a
method of one's own is written with (docs/methods-of-your-own.md). Importing this package imports neither torch nor
Ray: each name is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from raysim.version import __version__ as __version__

if TYPE_CHECKING:
    from raysim.client_split import split as split
    from raysim.cohort import Cohort as Cohort
    from raysim.config.run_config import RunConfig as RunConfig
    from raysim.config.run_config import default_config as default_config
    from raysim.engine.observer import Observer as Observer
    from raysim.errors import RaysimError as RaysimError
    from raysim.method import ClientTask as ClientTask
    from raysim.method import Context as Context
    from raysim.method import GlobalModel as GlobalModel
    from raysim.method import Message as Message
    from raysim.method import Method as Method
    from raysim.method import Traits as Traits
    from raysim.method import Update as Update
    from raysim.method import Updates as Updates
    from raysim.method import WholeModel as WholeModel
    from raysim.simulation import run as run
    from raysim.trained import load_model as load_model
    from raysim.training import gradients as gradients
    from raysim.training import local_sgd as local_sgd

if sys.argv[:1] == ["-m"]:  # python -m raysim.NAME: Python looks for the command's module, and loads it next
    from raysim.missing_packages import end_without_packages

    end_without_packages()

_MODULES = {
    "ClientTask": "raysim.method",
    "Cohort": "raysim.cohort",
    "Context": "raysim.method",
    "GlobalModel": "raysim.method",
    "Message": "raysim.method",
    "Method": "raysim.method",
    "Observer": "raysim.engine.observer",
    "RaysimError": "raysim.errors",
    "RunConfig": "raysim.config.run_config",
    "Traits": "raysim.method",
    "Update": "raysim.method",
    "Updates": "raysim.method",
    "WholeModel": "raysim.method",
    "default_config": "raysim.config.run_config",
    "gradients": "raysim.training",
    "load_model": "raysim.trained",
    "local_sgd": "raysim.training",
    "run": "raysim.simulation",
    "split": "raysim.client_split",
}
"""Where each public name is defined."""
__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'raysim' has no attribute {name!r}")
    if _MODULES[name] == "raysim.training":  # a module, not a name in one
        return importlib.import_module(f"raysim.training.{name}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
