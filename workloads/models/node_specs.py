"""Options of the models of the nodes of one graph; light to import, networks are loaded in ``build``.

``build(inputs)`` gives a ``raysim.workloads.models.classifier.Classifier`` from a ``NodeBatch`` of B nodes
(workloads/graphs/node_federation.py) to [B, inputs.classes]. Every last layer is linear, so that methods which treat
body and head apart go with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.graph_specs import BodyOfGraphs
from raysim.workloads.option_types import Ge, Help, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from torch import nn

    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier


class BodyOfNodes(BodyOfGraphs):
    """A body for the nodes of one graph and a linear head."""

    inputs: ClassVar[Literal["array", "graph", "nodes"]] = "nodes"
    begins_by_spreading: ClassVar[bool] = False
    """Whether the first thing done to features X is Â X, so that Â X may be given in their place."""

    def check_shape(self, inputs: InputSpec) -> None:
        if inputs.aggregated and not self.begins_by_spreading:
            raise WorkloadError(
                f"Model {self.name!r} needs the features of neighbors, and workload.exchange gives their sums. Take "
                "model 'gcn' or 'sgc', or set exchange to none."
            )


@dataclass(frozen=True)
class Gcn(BodyOfNodes):
    """The graph convolutional network of Kipf and Welling (2017), of PyTorch Geometric's layers, for nodes.

    With two layers it is Â · relu(Â X W₁) · W₂. The last layer passes features on first, so that the head is linear.
    ``layers 3, last linear, input_dropout false`` is the network of FED-PUB's code (Baek et al. 2023): two convolutions
    and a linear layer, dropout before the last two layers. FedTAD's (Zhu et al. 2024) has ``input_dropout false`` and,
    as its code leaves dropout on in evaluation, ``dropout_at_test true``.
    """

    name: ClassVar[str] = "gcn"
    begins_by_spreading: ClassVar[bool] = True

    layers: Annotated[int, Ge(2), Help("layers", "Kipf and Welling 2017")] = 2
    hidden: Annotated[PositiveInt, Help("width of the layers between", "Kipf and Welling 2017: 16")] = 64
    dropout: Annotated[ShareBelowOne, Help("dropout before every layer", "Kipf and Welling 2017")] = 0.5
    last: Annotated[
        Literal["convolution", "linear"],
        Help("the last layer: a convolution, or linear, so that it looks at no neighbors", "Baek et al. 2023 (code)"),
    ] = "convolution"
    input_dropout: Annotated[bool, Help("dropout of the input features too", "Kipf and Welling 2017")] = True
    dropout_at_test: Annotated[
        bool, Help("dropout in evaluation too, by one fixed draw", "the published code of FedTAD")
    ] = False

    def network(self, inputs: InputSpec) -> Classifier:
        from torch import nn

        model = super().network(inputs)
        if self.last == "convolution":
            nn.init.xavier_uniform_(model.head.weight)  # as every layer of the paper's
            nn.init.zeros_(model.head.bias)
        return model

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.node_networks import GcnBody

        return GcnBody(
            width,
            self.hidden,
            self.layers,
            self.dropout,
            spreads=self.last == "convolution",
            of_inputs=self.input_dropout,
            at_test=self.dropout_at_test,
        )


@dataclass(frozen=True)
class Gat(BodyOfNodes):
    """A graph attention network (Veličković et al. 2018) of PyTorch Geometric's layers, with a linear head.

    ``layers`` convolutions with ELU, whose heads' outputs are put side by side. In print the last convolution gives the
    classes, with attention of its own; here it gives features, which the head reads.
    """

    name: ClassVar[str] = "gat"

    layers: Annotated[PositiveInt, Help("attention layers before the head", "Veličković et al. 2018: 2")] = 2
    hidden: Annotated[PositiveInt, Help("width of every layer, divisible by heads", "Veličković et al. 2018")] = 64
    heads: Annotated[PositiveInt, Help("attention heads", "Veličković et al. 2018")] = 8
    dropout: Annotated[ShareBelowOne, Help("dropout of features and attention", "Veličković et al. 2018: 0.6")] = 0.5

    def check_shape(self, inputs: InputSpec) -> None:
        super().check_shape(inputs)
        if self.hidden % self.heads:
            raise WorkloadError(
                f"Model 'gat': hidden must be divisible by heads, not {self.hidden} with {self.heads} heads. Nearest: "
                f"hidden {max(1, round(self.hidden / self.heads)) * self.heads}."
            )

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.node_networks import GatBody

        return GatBody(width, self.hidden, self.layers, self.heads, self.dropout)


@dataclass(frozen=True)
class Sage(BodyOfNodes):
    """GraphSAGE with the mean aggregator (Hamilton et al. 2017) of PyTorch Geometric's layers, for nodes.

    Its last layer W₁ x + W₂ mean(x of neighbors) is linear in [x ‖ mean(x of neighbors)], which the body gives.
    """

    name: ClassVar[str] = "sage"

    layers: Annotated[int, Ge(2), Help("layers", "Hamilton et al. 2017")] = 2
    hidden: Annotated[PositiveInt, Help("width of the layers between")] = 64
    dropout: Annotated[ShareBelowOne, Help("dropout before every layer but the first")] = 0.5

    def features(self, width: int) -> int:
        return 2 * self.hidden

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.node_networks import SageBody

        return SageBody(width, self.hidden, self.layers, self.dropout)


@dataclass(frozen=True)
class Sgc(BodyOfNodes):
    """Simplified graph convolution (Wu et al. 2019): a linear layer on Âᴷ X. Its body has no parameters."""

    name: ClassVar[str] = "sgc"
    begins_by_spreading: ClassVar[bool] = True
    parts: ClassVar[tuple[str, ...]] = ("head.",)

    hops: Annotated[PositiveInt, Help("K, multiplications by Â", "Wu et al. 2019")] = 2

    def features(self, width: int) -> int:
        return width

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.node_networks import SgcBody

        return SgcBody(self.hops, width)


@dataclass(frozen=True)
class Gamlp(BodyOfNodes):
    """GAMLP with recursive attention (Zhang et al. 2022): an MLP on a mean of X, ÂX, …, Âᴷ X that each node weighs."""

    name: ClassVar[str] = "gamlp"

    hops: Annotated[PositiveInt, Help("K, multiplications by Â", "Zhang et al. 2022")] = 3
    layers: Annotated[PositiveInt, Help("layers of the MLP before the head")] = 1
    hidden: Annotated[PositiveInt, Help("width of the MLP")] = 64
    dropout: Annotated[ShareBelowOne, Help("dropout before every layer of the MLP and the head")] = 0.5

    def body(self, width: int) -> nn.Module:
        from raysim.workloads.models.node_networks import GamlpBody

        return GamlpBody(width, self.hidden, self.layers, self.hops, self.dropout)
