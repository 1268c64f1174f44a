"""Options of the graph models; light to import, the networks themselves are loaded in `build`.

`build(task)` gives a `workloads.models.classifier.Classifier` from a `GraphBatch` of B graphs to [B, task.classes].
Clients whose tasks differ share the graph convolutions only (with `StructuralGin` the structural channel too): input
layer, head, and the layers between pooling and head stay with their client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from workloads.errors import WorkloadError
from workloads.option_types import Help, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from workloads.federated_data import Task
    from workloads.models.classifier import Classifier


def node_width(model: str, task: Task) -> int:
    """F, the width of a node's features; WorkloadError if the task's inputs are no graphs."""
    if task.kind != "graph":
        raise WorkloadError(
            f"Model {model!r} needs graphs, but the workload's inputs are arrays of shape {task.input_shape}. Choose an"
            " image model, such as 'cnn' or 'mlp', or a workload of graphs."
        )
    return task.input_shape[0]


Layers = Annotated[PositiveInt, Help("graph convolutions", "Xie et al. 2021")]
Hidden = Annotated[PositiveInt, Help("width of every layer", "Xie et al. 2021")]
Dropout = Annotated[
    ShareBelowOne, Help("dropout behind every convolution and before the head", "Xie et al. 2021 (code)")
]


@dataclass(frozen=True)
class Gin:
    """GIN (Xu et al. 2019) as the graph baselines have it: linear, 3 × (GIN + ReLU + dropout), sum, linear + ReLU.

    The network of Xie et al. 2021 (GCFL) and Tan et al. 2023 (FedStar), and of their code; no BatchNorm.
    """

    name: ClassVar[str] = "gin"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.")
    batch_norm: ClassVar[bool] = False

    layers: Layers = 3
    hidden: Hidden = 64
    dropout: Dropout = 0.5

    def check(self, task: Task) -> None:
        node_width(self.name, task)

    def build(self, task: Task) -> Classifier:
        width = node_width(self.name, task)
        from workloads.models.gnn import gin

        return gin(width, task.classes, layers=self.layers, hidden=self.hidden, dropout=self.dropout)


@dataclass(frozen=True)
class GraphSage:
    """GraphSAGE (Hamilton et al. 2017) with the mean aggregator; else the same network as `Gin`."""

    name: ClassVar[str] = "graphsage"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.")
    batch_norm: ClassVar[bool] = False

    layers: Layers = 3
    hidden: Hidden = 64
    dropout: Dropout = 0.5

    def check(self, task: Task) -> None:
        node_width(self.name, task)

    def build(self, task: Task) -> Classifier:
        width = node_width(self.name, task)
        from workloads.models.gnn import graph_sage

        return graph_sage(width, task.classes, layers=self.layers, hidden=self.hidden, dropout=self.dropout)


@dataclass(frozen=True)
class StructuralGin:
    """FedStar's network (Tan et al. 2023): `Gin` with a structural channel, `body.structure.*`, joined at every layer.

    The channel embeds random-walk and degree encodings (workloads/graphs/structural_encodings.py) and passes them
    through GCN layers with tanh; every GIN layer reads [x ‖ s], and a linear layer joins both before the sum over
    nodes.
    """

    name: ClassVar[str] = "gin-star"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.", "body.structure.")
    batch_norm: ClassVar[bool] = False

    layers: Layers = 3
    hidden: Hidden = 64
    dropout: Dropout = 0.5
    walk_steps: Annotated[
        PositiveInt, Help("return probabilities of 1 … so many random-walk steps", "Tan et al. 2023")
    ] = 16
    degrees: Annotated[PositiveInt, Help("one-hot degree of a node, cut to so many", "Tan et al. 2023")] = 16

    def check(self, task: Task) -> None:
        node_width(self.name, task)

    def build(self, task: Task) -> Classifier:
        width = node_width(self.name, task)
        from workloads.models.gnn import structural_gin

        return structural_gin(
            width,
            task.classes,
            layers=self.layers,
            hidden=self.hidden,
            dropout=self.dropout,
            walk_steps=self.walk_steps,
            degrees=self.degrees,
        )
