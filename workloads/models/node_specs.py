"""Options of the models that tell the nodes of a graph apart; light to import.

``build(task)`` gives a ``workloads.models.classifier.Classifier`` from a ``NodeBatch``
(workloads/graphs/node_federation.py) of B nodes to [B, task.classes].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from workloads.errors import WorkloadError
from workloads.models.model_options import ModelOptions
from workloads.option_types import Ge, Help, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from workloads.federated_data import InputSpec
    from workloads.models.classifier import Classifier


@dataclass(frozen=True)
class Gcn(ModelOptions):
    """The graph convolutional network of Kipf and Welling (2017), of PyTorch Geometric's layers, for nodes.

    With two layers it is Â · relu(Â X W₁) · W₂. The last layer passes features on first, so that the head is linear.
    """

    name: ClassVar[str] = "gcn"
    inputs: ClassVar[Literal["array", "graph", "nodes"]] = "nodes"

    layers: Annotated[int, Ge(2), Help("layers", "Kipf and Welling 2017")] = 2
    hidden: Annotated[PositiveInt, Help("width of the layers between", "Kipf and Welling 2017: 16")] = 64
    dropout: Annotated[ShareBelowOne, Help("dropout before every layer", "Kipf and Welling 2017")] = 0.5

    def check(self, task: InputSpec) -> None:
        if task.kind != "nodes":
            raise WorkloadError(
                f"Model {self.name!r} tells the nodes of a graph apart, and the workload's inputs are "
                f"{'whole graphs' if task.kind == 'graph' else 'arrays'}. Choose the workload nodes, or another model."
            )

    def build(self, task: InputSpec) -> Classifier:
        self.check(task)
        from torch import nn

        from workloads.models.classifier import Classifier
        from workloads.models.node_networks import GcnBody

        body = GcnBody(task.input_shape[0], self.hidden, self.layers, self.dropout)
        head = nn.Linear(self.hidden, task.classes)
        nn.init.xavier_uniform_(head.weight)  # as every layer of the paper's
        nn.init.zeros_(head.bias)
        return Classifier(body, head)
