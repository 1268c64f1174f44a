"""Options of the graph models; light to import, the networks themselves are loaded in ``build``.

``build(task)`` gives a ``workloads.models.classifier.Classifier`` from a ``GraphBatch`` of B graphs to [B,
task.classes]. Clients whose tasks differ share the graph convolutions only (with ``StructuralGin`` the structural
channel too): input layer, head, and the layers between pooling and head stay with their client.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from workloads.errors import WorkloadError
from workloads.models.model_options import ModelOptions
from workloads.option_types import Help, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from torch import nn

    from workloads.federated_data import InputSpec
    from workloads.models.classifier import Classifier


def node_width(model: str, task: InputSpec) -> int:
    """F, the width of a node's features; WorkloadError if the task's inputs are no graphs."""
    if task.kind != "graph":
        raise WorkloadError(
            f"Model {model!r} needs whole graphs, but the workload's inputs are nodes of one. Choose 'gcn'."
            if task.kind == "nodes"
            else f"Model {model!r} needs graphs, but the workload's inputs are arrays of shape {task.input_shape}. "
            "Choose an image model, such as 'cnn' or 'mlp', or a workload of graphs."
        )
    return task.input_shape[0]


@dataclass(frozen=True)
class GraphNetwork(ModelOptions):
    """What the graph networks have in common: a body (workloads/models/gnn.py) and a linear head."""

    inputs: ClassVar[Literal["array", "graph"]] = "graph"

    layers: Annotated[PositiveInt, Help("graph convolutions", "Xie et al. 2021")] = 3
    hidden: Annotated[PositiveInt, Help("width of every layer", "Xie et al. 2021")] = 64
    dropout: Annotated[
        ShareBelowOne, Help("dropout behind every convolution and before the head", "Xie et al. 2021 (code)")
    ] = 0.5

    def check(self, task: InputSpec) -> None:
        node_width(self.name, task)

    def build(self, task: InputSpec) -> Classifier:
        width = node_width(self.name, task)
        from torch import nn

        from workloads.models.classifier import Classifier

        return Classifier(self.body(width), nn.Linear(self.hidden, task.classes))

    @abstractmethod
    def body(self, width: int) -> nn.Module:
        """From a ``GraphBatch`` of B graphs, whose nodes have ``width`` features, to features [B, hidden]."""


@dataclass(frozen=True)
class Gin(GraphNetwork):
    """GIN (Xu et al. 2019) as the graph baselines have it: linear, 3 × (GIN + ReLU + dropout), sum, linear + ReLU.

    The network of Xie et al. 2021 (GCFL) and Tan et al. 2023 (FedStar), and of their code; no BatchNorm.
    """

    name: ClassVar[str] = "gin"

    def body(self, width: int) -> nn.Module:
        from workloads.models.gnn import GinConvolution, GraphBody

        return GraphBody(width, self.hidden, self.layers, self.dropout, GinConvolution)


@dataclass(frozen=True)
class GraphSage(GraphNetwork):
    """GraphSAGE (Hamilton et al. 2017) with the mean aggregator; else the same network as ``Gin``."""

    name: ClassVar[str] = "graphsage"

    def body(self, width: int) -> nn.Module:
        from workloads.models.gnn import GraphBody, SageConvolution

        return GraphBody(width, self.hidden, self.layers, self.dropout, SageConvolution)


@dataclass(frozen=True)
class StructuralGin(GraphNetwork):
    """FedStar's network (Tan et al. 2023): ``Gin`` with a structural channel, which is joined at every layer.

    The channel, ``body.structure.*``, embeds random-walk and degree encodings
    (workloads/graphs/structural_encodings.py) and passes them through GCN layers with tanh; every GIN layer reads
    [x ‖ s], and a linear layer joins both before the sum over nodes.
    """

    name: ClassVar[str] = "gin-star"
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.", "body.structure.")

    walk_steps: Annotated[
        PositiveInt, Help("return probabilities of random walks of 1 to this many steps", "Tan et al. 2023")
    ] = 16
    degrees: Annotated[
        PositiveInt, Help("largest one-hot degree of a node; larger ones count as it", "Tan et al. 2023")
    ] = 16

    def body(self, width: int) -> nn.Module:
        from workloads.models.gnn import StructuralBody

        return StructuralBody(width, self.hidden, self.layers, self.dropout, self.walk_steps, self.degrees)
