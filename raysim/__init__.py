"""Federated learning, simulated in parallel on Ray.

``raysim.run("fedavg", model=…, clients=…)`` runs a method and returns its tables and its trained model, ``python -m
raysim.launch`` does the same from a shell, and ``raysim.split(data)`` cuts a data set over clients.
``raysim.load_model(folder)`` gives the model of an earlier run, ``raysim.compare(runs)`` the tables of a study of
several, with paired differences. The other names are what a
method of one's own is written with (docs/methods-of-your-own.md). Importing this package imports neither torch nor
Ray: each name is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from raysim.version import __version__ as __version__

if TYPE_CHECKING:
    from raysim.aggregators.means import plain_mean as plain_mean
    from raysim.aggregators.means import sample_weights as sample_weights
    from raysim.aggregators.means import weighted_sum as weighted_sum
    from raysim.cohort import Cohort as Cohort
    from raysim.comparison.runs import compare as compare
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
    from raysim.results.load_model import load_model as load_model
    from raysim.running.client_split import split as split
    from raysim.running.simulation import run as run
    from raysim.training import gradients as gradients
    from raysim.training import local_sgd as local_sgd
    from raysim.workloads.federated_data import ClientData as ClientData
    from raysim.workloads.federated_data import InputSpec as InputSpec
    from raysim.workloads.option_types import Help as Help
    from raysim.workloads.option_types import NonNegative as NonNegative
    from raysim.workloads.option_types import NonNegativeInt as NonNegativeInt
    from raysim.workloads.option_types import OpenShare as OpenShare
    from raysim.workloads.option_types import Positive as Positive
    from raysim.workloads.option_types import PositiveInt as PositiveInt
    from raysim.workloads.option_types import PositiveShare as PositiveShare
    from raysim.workloads.option_types import Share as Share
    from raysim.workloads.option_types import ShareBelowOne as ShareBelowOne

if sys.argv[:1] == ["-m"]:  # python -m raysim.NAME: Python looks for the command's module, and loads it next
    from raysim.missing_packages import end_without_packages

    end_without_packages()

_MODULES = {
    "ClientData": "raysim.workloads.federated_data",
    "ClientTask": "raysim.method",
    "Cohort": "raysim.cohort",
    "Context": "raysim.method",
    "GlobalModel": "raysim.method",
    "Help": "raysim.workloads.option_types",
    "InputSpec": "raysim.workloads.federated_data",
    "Message": "raysim.method",
    "Method": "raysim.method",
    "NonNegative": "raysim.workloads.option_types",
    "NonNegativeInt": "raysim.workloads.option_types",
    "Observer": "raysim.engine.observer",
    "OpenShare": "raysim.workloads.option_types",
    "Positive": "raysim.workloads.option_types",
    "PositiveInt": "raysim.workloads.option_types",
    "PositiveShare": "raysim.workloads.option_types",
    "RaysimError": "raysim.errors",
    "RunConfig": "raysim.config.run_config",
    "Share": "raysim.workloads.option_types",
    "ShareBelowOne": "raysim.workloads.option_types",
    "Traits": "raysim.method",
    "Update": "raysim.method",
    "Updates": "raysim.method",
    "WholeModel": "raysim.method",
    "compare": "raysim.comparison.runs",
    "default_config": "raysim.config.run_config",
    "gradients": "raysim.training",
    "load_model": "raysim.results.load_model",
    "local_sgd": "raysim.training",
    "plain_mean": "raysim.aggregators.means",
    "run": "raysim.running.simulation",
    "sample_weights": "raysim.aggregators.means",
    "split": "raysim.running.client_split",
    "weighted_sum": "raysim.aggregators.means",
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
