"""Access of methods to the graph behind a client's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim.method import Tensor
from raysim.workloads.federated_data import ClientData

if TYPE_CHECKING:
    from raysim.workloads.graphs.node_batch import NodeBatch


def training_nodes(data: ClientData) -> tuple[NodeBatch, Tensor]:
    """A batch of all training nodes of a client in their order, and their labels [B]."""
    (batch,) = data.train.batches(max(1, len(data.train)))
    return batch.x, batch.y


def all_nodes(batch: NodeBatch) -> NodeBatch:
    """The batch that asks for every node of the same graph, in order."""
    import torch

    from raysim.workloads.graphs.node_batch import NodeBatch

    return NodeBatch(batch.graph, torch.arange(batch.num_nodes, device=batch.x.device))
