"""What options of every model have, and which shapes of inputs models can do with; light to import."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from workloads.errors import WorkloadError

if TYPE_CHECKING:
    from workloads.federated_data import InputSpec
    from workloads.models.classifier import Classifier


class ModelOptions(ABC):
    """Base of the options of a model, which are frozen dataclasses."""

    name: ClassVar[str]
    inputs: ClassVar[Literal["array", "graph", "nodes"]] = "array"
    """What kind of task it is for."""
    parts: ClassVar[tuple[str, ...]] = ("body.", "head.")
    """What names of its parameters begin with, as far as methods may ask for it (``Traits.model_parts``)."""
    batch_norm: ClassVar[bool] = False
    """Whether the network has BatchNorm layers."""

    @abstractmethod
    def check(self, task: InputSpec) -> None:
        """Whether ``build`` can do with inputs of this shape, without importing torch; WorkloadError if not."""

    @abstractmethod
    def build(self, task: InputSpec) -> Classifier:
        """A freshly initialized network for this task."""


def array_shape(model: str, task: InputSpec) -> tuple[int, ...]:
    """The shape of the task's inputs; WorkloadError if these are graphs or tokens."""
    if task.kind == "nodes":
        raise WorkloadError(
            f"Model {model!r} takes arrays, such as images, but the workload's inputs are nodes of a graph. Choose "
            "'gcn'."
        )
    if task.kind == "graph":
        raise WorkloadError(
            f"Model {model!r} takes arrays, such as images, but the workload's inputs are graphs. Choose a graph model:"
            " 'spectral', 'gin', 'graphsage', 'gin-star'."
        )
    if task.vocabulary:
        raise WorkloadError(
            f"Model {model!r} takes numbers, such as pixels, but the workload's inputs are sequences of tokens. Choose "
            "'lstm' or 'transformer'."
        )
    return task.input_shape


def image_shape(model: str, task: InputSpec, least: int) -> tuple[int, int, int]:
    """The task's (channels, height, width); WorkloadError if it is no image or a side is under ``least`` pixels."""
    array_shape(model, task)
    if len(task.input_shape) != 3:
        raise WorkloadError(
            f"Model {model!r} needs images of shape (channels, height, width), but the workload's inputs have shape "
            f"{task.input_shape}. Choose 'logistic' or 'mlp', which take any shape, or 'cnn1d' for signals."
        )
    channels, height, width = task.input_shape
    if min(height, width) < least:
        raise WorkloadError(
            f"Model {model!r} needs images of at least {least}x{least} pixels, but the workload's are {height}x{width}."
            f" Choose a smaller model ('cnn' from 4x4, 'mlp' and 'logistic' for any size) or larger images."
        )
    return channels, height, width


def signal_shape(model: str, task: InputSpec, least: int) -> tuple[int, int]:
    """The task's (channels, length); WorkloadError if its inputs are no signals or shorter than ``least``."""
    shape = array_shape(model, task)
    if len(shape) != 2 or shape[1] < least:
        raise WorkloadError(
            f"Model {model!r} needs signals of shape (channels, length) with a length of at least {least}, but the "
            f"workload's inputs have shape {shape}. Choose 'mlp', which takes any shape."
        )
    return shape[0], shape[1]


def token_length(model: str, task: InputSpec) -> int:
    """The number of tokens in an input; WorkloadError if the task's inputs are no token sequences."""
    if task.kind != "array" or not task.vocabulary or len(task.input_shape) != 1:
        raise WorkloadError(
            f"Model {model!r} needs sequences of tokens, such as characters, but the workload's inputs are other "
            f"{f'arrays, of shape {task.input_shape}' if task.kind == 'array' else 'graphs'}. Choose 'mlp' or a "
            "workload of text."
        )
    return task.input_shape[0]
