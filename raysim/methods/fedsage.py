"""FedSage on graph classification: federated averaging of a GraphSAGE encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from raysim.method import Traits
from raysim.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedSage(FedAvg):
    """FedSage: FedAvg, by default over GraphSAGE (``model.name``: ``graphsage``).

    Source: Zhang et al. 2021, Subgraph federated learning with missing neighbor generation (NeurIPS; arXiv 2106.13430),
    FedSage without the "+": as the tables of FedStar and FedSSP use it. The neighbor generator of FedSage+ mends links
    between clients, which do not exist where a client holds whole graphs. With another model this is FedAvg on it.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True)
    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "graphsage"}


METHOD = FedSage
