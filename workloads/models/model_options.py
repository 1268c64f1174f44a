"""The common part of every model's options, and the shapes of inputs that models can do with; light to import."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from raysim.workloads.errors import WorkloadError
from raysim.workloads.option_types import Help

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier


KINDS = {
    "array": ("arrays, such as images", "'mlp', 'cnn' or another model of arrays"),
    "tokens": ("sequences of tokens, such as characters", "'embedding-bag', 'cnn1d', 'lstm' or 'transformer'"),
    "graph": ("graphs", "'spectral', 'gin', 'graphsage' or 'gin-star'"),
    "nodes": ("nodes of one graph", "'gcn', 'gat', 'sage', 'sgc' or 'gamlp'"),
}
"""Kinds of inputs, and the models that take them."""


@dataclass(frozen=True)
class ModelOptions(ABC):
    """Base of the options of a model, which are frozen dataclasses."""

    name: ClassVar[str]
    inputs: ClassVar[Literal["array", "graph", "nodes"]] = "array"
    """Kind of task that the model is for."""
    tokens: ClassVar[bool | None] = False
    """Whether its arrays are sequences of tokens; None: they may be, or not."""
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.")
    """Prefixes of its parameters' names, as far as methods may ask for them (``Traits.model_parts``)."""
    batch_norm: ClassVar[bool] = False
    """Whether the network has BatchNorm layers."""
    published_head: ClassVar[str] = ""
    """Beginning of the names of the last layer in published weights of this network; empty: there are none."""

    weights_file: Annotated[
        str,
        Help(
            "local file with initial values by their names, .safetensors or a .pth state dict: raysim's names (body.…, "
            "head.…; a head of another shape stays random), or those that the network was published with, whose last "
            "layer is passed over; empty: random initialization; nothing is fetched"
        ),
    ] = field(default="", kw_only=True)

    def check(self, inputs: InputSpec) -> None:
        """Whether ``build`` can do with inputs of this shape, without importing torch; WorkloadError if not."""
        takes, has = "tokens" if self.tokens else self.inputs, "tokens" if inputs.vocabulary else inputs.kind
        if takes != has and not (self.tokens is None and has == "tokens"):
            raise WorkloadError(
                f"Model {self.name!r} takes {KINDS[takes][0]}, but the workload's inputs are {KINDS[has][0]}, of shape "
                f"{inputs.input_shape}. Choose {KINDS[has][1]}, or another workload."
            )
        self.check_shape(inputs)
        if self.weights_file and not self.weights_path().is_file():
            raise WorkloadError(
                f"There is no weights file {self.weights_path()}. Give the path of a local file, or leave weights_file "
                "empty for random initialization; weights are never fetched."
            )

    def build(self, inputs: InputSpec) -> Classifier:
        """A freshly initialized network for these inputs, or one with the values of ``weights_file``."""
        self.check(inputs)
        model = self.network(inputs)
        if self.weights_file:
            from raysim.workloads.models.weights import load_weights

            skip = self.not_as_published(inputs)
            load_weights(model, str(self.weights_path()), skip=skip, published_head=self.published_head)
        return model

    def weights_path(self) -> Path:
        """The file that ``weights_file`` means."""
        return Path(self.weights_file).expanduser()

    def not_as_published(self, inputs: InputSpec) -> Set[str]:
        """Names of the body's tensors that published weights have in another shape; they stay random."""
        return frozenset()

    def check_shape(self, inputs: InputSpec) -> None:
        """WorkloadError if options and inputs, which are of the right kind, do not go together."""
        return

    @abstractmethod
    def network(self, inputs: InputSpec) -> Classifier:
        """Build the network for inputs that are checked."""
