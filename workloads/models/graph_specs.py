"""Options of the models of graphs; light to import, networks are loaded in ``build``.

``build(inputs)`` gives a ``raysim.workloads.models.classifier.Classifier`` from a ``GraphBatch`` of B graphs to
[B, inputs.classes]. Clients whose tasks differ share the graph convolutions only (with ``StructuralGin`` the structural
channel too): input layer, head, and the layers between pooling and head stay with their client.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.model_options import ModelOptions
from raysim.workloads.option_types import Ge, Help, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from torch import nn

    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier


class BodyOfGraphs(ModelOptions):
    """The common part of the models here: a body (workloads/models/gnn.py, say) and a linear head."""

    inputs: ClassVar[Literal["array", "graph", "nodes"]] = "graph"
    hidden: int

    def network(self, inputs: InputSpec) -> Classifier:
        from torch import nn

        from raysim.workloads.models.classifier import Classifier

        width = inputs.input_shape[0]
        return Classifier(self.body(width), nn.Linear(self.features(width), inputs.classes))

    def features(self, width: int) -> int:
        """Width of the features that the body makes of nodes with ``width`` features."""
        return self.hidden

    @abstractmethod
    def body(self, width: int) -> nn.Module:
        """From a batch of B graphs or nodes, where nodes have ``width`` features, to features [B, features]."""


@dataclass(frozen=True)
class GraphNetwork(BodyOfGraphs):
    """The options that the graph networks of ``gnn`` have in common."""

    layers: Annotated[PositiveInt, Help("graph convolutions", "Xie et al. 2021")] = 3
    hidden: Annotated[PositiveInt, Help("width of every layer", "Xie et al. 2021")] = 64
    dropout: Annotated[
        ShareBelowOne, Help("dropout behind every convolution and before the head", "Xie et al. 2021 (code)")
    ] = 0.5


@dataclass(frozen=True)
class Gin(GraphNetwork):
    """GIN (Xu et al. 2019) as the graph baselines have it: linear, 3 × (GIN + ReLU + dropout), sum, linear + ReLU.

    The network of Xie et al. 2021 (GCFL) and Tan et al. 2023 (FedStar), and of their code; no BatchNorm.
    """

    name: ClassVar[str] = "gin"

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.gnn import GinConvolution, GraphBody

        return GraphBody(width, self.hidden, self.layers, self.dropout, GinConvolution)


@dataclass(frozen=True)
class GraphSage(GraphNetwork):
    """GraphSAGE (Hamilton et al. 2017) with the mean aggregator; else the same network as ``Gin``."""

    name: ClassVar[str] = "graphsage"

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.gnn import GraphBody, SageConvolution

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
        from raysim.workloads.models.gnn import StructuralBody

        return StructuralBody(width, self.hidden, self.layers, self.dropout, self.walk_steps, self.degrees)


@dataclass(frozen=True)
class Spectral(BodyOfGraphs):
    """FedSSP's spectral graph network, a Specformer (Bo et al. 2023) whose filters are evaluated at the edges only."""

    name: ClassVar[str] = "spectral"
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.", "body.eigenvalue_encoder.", "body.filter_encoder.")
    batch_norm: ClassVar[bool] = True
    needs_spectra: ClassVar[bool] = True
    """Eigenvalues and eigenvectors of every graph are computed before the first round."""

    hidden: Annotated[int, Ge(2), Help("width of all layers; even, and divisible by heads", "FedSSP")] = 128
    heads: Annotated[PositiveInt, Help("attention heads, and new eigenvalues of each", "FedSSP")] = 4
    layers: Annotated[PositiveInt, Help("graph convolutions", "FedSSP")] = 3
    decoder_activation: Annotated[Literal["none", "relu", "tanh"], Help("activation of the new eigenvalues")] = "none"
    dropout: Annotated[
        ShareBelowOne,
        Help(
            "dropout in and behind the attention, behind its FFN, in the filter encoder and the convolutions",
            "FedSSP (code)",
        ),
    ] = 0.1

    def check_shape(self, inputs: InputSpec) -> None:
        step = self.heads if self.heads % 2 == 0 else 2 * self.heads
        if self.hidden % step:
            raise WorkloadError(
                f"Model 'spectral': hidden must be even and divisible by heads, not {self.hidden} with {self.heads} "
                f"heads. Nearest: hidden {max(step, round(self.hidden / step) * step)}."
            )

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.specformer import SpectralBody

        return SpectralBody(width, self.hidden, self.heads, self.layers, self.decoder_activation, self.dropout)
