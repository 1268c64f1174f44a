"""The common part of every model's options, and the shapes of inputs that models can do with; light to import."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from raysim.workloads.errors import WorkloadError

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

    def check(self, inputs: InputSpec) -> None:
        """Whether ``build`` can do with inputs of this shape, without importing torch; WorkloadError if not."""
        takes, has = "tokens" if self.tokens else self.inputs, "tokens" if inputs.vocabulary else inputs.kind
        if takes != has and not (self.tokens is None and has == "tokens"):
            raise WorkloadError(
                f"Model {self.name!r} takes {KINDS[takes][0]}, but the workload's inputs are {KINDS[has][0]}, of shape "
                f"{inputs.input_shape}. Choose {KINDS[has][1]}, or another workload."
            )
        self.check_shape(inputs)

    def build(self, inputs: InputSpec) -> Classifier:
        """A freshly initialized network for these inputs."""
        self.check(inputs)
        return self.network(inputs)

    def check_shape(self, inputs: InputSpec) -> None:
        """WorkloadError if options and inputs, which are of the right kind, do not go together."""
        return

    @abstractmethod
    def network(self, inputs: InputSpec) -> Classifier:
        """Build the network for inputs that are checked."""
