"""FedGCN: federated averaging of a GCN whose clients exchange sums of neighbors' features once, before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from raysim.method import Traits
from raysim.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedGCN(FedAvg):
    """FedGCN: FedAvg, by default on ``workload.exchange two_hops`` with a GCN of two layers.

    Source: Yao et al. 2023, FedGCN: Convergence-communication tradeoffs in federated training of graph convolutional
    networks (NeurIPS; arXiv 2201.12433), Algorithm 1. Clients first exchange Â X, sums over all neighbors that no
    client has alone; a client task is FedAvg's, with the layers

        H = relu((Â X) W₁),   Ŷ = softmax(Â H W₂)

    on the client's nodes and (two hops) their neighbors elsewhere. The exchange is an option of the workload, so that
    every method may have it; with ``exchange none`` this is FedAvg.

    Departures: sums are not encrypted, and weigh 4 bytes a feature. Where ``model.input_dropout`` is on, dropout is of
    Â X. The authors' code copies features of neighbors to clients and adds up there; degrees at the edge of what a
    client sees are then those of its part, here those of the whole graph.
    """

    traits: ClassVar[Traits] = Traits(weighted_mean=True, node_graphs=True)
    defaults: ClassVar[Mapping[str, object]] = {
        "workload.name": "nodes",
        "workload.exchange": "two_hops",
        "model.name": "gcn",
        "model.input_dropout": False,
    }


METHOD = FedGCN
