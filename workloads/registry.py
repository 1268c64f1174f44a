"""The workloads by name. A workload's module is imported only when it is asked for."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

from workloads.errors import WorkloadError

WORKLOADS: dict[str, str] = {
    "digits": "workloads.images.digits:Digits",
    "cifar10": "workloads.images.torchvision_sets:Cifar10",
    "mnist": "workloads.images.torchvision_sets:Mnist",
    "fashion-mnist": "workloads.images.torchvision_sets:FashionMnist",
    "npz": "workloads.images.npz:Npz",
    "retinamnist": "workloads.images.medical:RetinaMnist",
    "covid-xray": "workloads.images.medical:CovidXray",
    "retina": "workloads.images.ssl_fl:Retina",
    "covid-fl": "workloads.images.ssl_fl:CovidFl",
    "synthetic": "workloads.images.synthetic:Synthetic",
    "tudataset": "workloads.graphs.tudataset:TuDataset",
    "toy-graphs": "workloads.graphs.toy:ToyGraphs",
}


def workload_class(name: str) -> type[Any]:
    """The options dataclass of a workload, with its method `load(stream) -> Federation`; WorkloadError if unknown."""
    if name not in WORKLOADS:
        near = difflib.get_close_matches(name.lower(), WORKLOADS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise WorkloadError(f"unknown workload {name!r}{hint} Known: {', '.join(WORKLOADS)}")
    module, _, attribute = WORKLOADS[name].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found
