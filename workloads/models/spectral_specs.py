"""Options of the spectral graph network; light to import."""

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
class Spectral(ModelOptions):
    """FedSSP's spectral graph network, a Specformer (Bo et al. 2023) whose filters are evaluated at the edges only."""

    name: ClassVar[str] = "spectral"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
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

    def check(self, task: InputSpec) -> None:
        if task.kind != "graph":
            raise WorkloadError(
                f"Model 'spectral' needs graphs, but the workload's inputs are "
                f"{'nodes of one' if task.kind == 'nodes' else f'arrays of shape {task.input_shape}'}. "
                "Choose the workload 'tudataset' or 'toy-graphs', or a model for images."
            )
        step = self.heads if self.heads % 2 == 0 else 2 * self.heads
        if self.hidden % step:
            raise WorkloadError(
                f"Model 'spectral': hidden must be even and divisible by heads, not {self.hidden} with {self.heads} "
                f"heads. Nearest: hidden {max(step, round(self.hidden / step) * step)}."
            )

    def build(self, task: InputSpec) -> Classifier:
        self.check(task)
        from torch import nn

        from workloads.models.classifier import Classifier
        from workloads.models.specformer import SpectralBody

        body = SpectralBody(
            task.input_shape[0], self.hidden, self.heads, self.layers, self.decoder_activation, self.dropout
        )
        return Classifier(body, nn.Linear(self.hidden, task.classes))
