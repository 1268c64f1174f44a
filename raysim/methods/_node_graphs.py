"""Access of methods to the graph behind a client's nodes."""

from __future__ import annotations

from collections.abc import Callable
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


def spread_labels(spread: Callable[[Tensor], Tensor], start: Tensor, steps: int, share: float) -> Tensor:
    """Yᴷ [n, C] of Yᵏ = (1 − α) Y⁰ + α Â Yᵏ⁻¹.

    Args:
        spread: multiplies [n, C] by Â.
        start: Y⁰ [n, C].
        steps: K.
        share: α.
    """
    values = start
    for _ in range(steps):
        values = (1 - share) * start + share * spread(values)
    return values
