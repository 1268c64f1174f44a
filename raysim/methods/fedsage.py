"""FedSage on graph classification: federated averaging of a GraphSAGE encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from raysim.method import ClientTask, Context, GlobalModel, Message, Traits, Update, Updates, Vector

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from workloads.federated_data import ClientData


@dataclass(frozen=True)
class FedSage(GlobalModel):
    """FedSage: FedAvg, by default over GraphSAGE (``model.name``: ``graphsage``).

    Source: Zhang et al. 2021, Subgraph federated learning with missing neighbor generation (NeurIPS; arXiv 2106.13430),
    FedSage without the "+": as the tables of FedStar and FedSSP use it. The neighbour generator of FedSage+ mends links
    between clients, which do not exist where a client holds whole graphs. With another model this is FedAvg on it.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True)
    defaults: ClassVar[Mapping[str, object]] = {"workload.name": "toy-graphs", "model.name": "graphsage"}

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        from raysim.training.local_sgd import local_update

        return local_update(model, data, message, task), None

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean()


METHOD = FedSage
