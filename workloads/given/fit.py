"""Whether a model and the data that were given in Python go together, found by showing it two samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.errors import WorkloadError, reason_of
from raysim.workloads.federated_data import Federation, objective_of
from raysim.workloads.given.labels import as_classes, check_one_hot
from raysim.workloads.objective import Kind, Objective

OF_TYPES = "Numbers with a fraction come as float32 and all others as int64: convert x, or the model"
TYPES = re.compile(r"dtype|(scalar|[Ii]nput|weight|bias|output) types?\b|not implemented for '")
"""Words of torch's errors on tensors of the wrong type of numbers."""


def fitted(federation: ArrayFederation, module: torch.nn.Module, task: Kind | None) -> tuple[Kind, int]:
    """Find the task to be learned, and the number of a model's outputs.

    Args:
        federation: the data.
        module: the model; it is shown two samples.
        task: what is to be learned, None if it was not said.

    Raises:
        WorkloadError: the model cannot take the inputs, or its outputs, the labels, the loss or a metric do not fit.
    """
    batch = next(iter(federation.client(0, "cpu").train.batches(2)))
    what = f"x of {str(batch.x.dtype).removeprefix('torch.')} {tuple(batch.x.shape)}"
    sizes = "".join(f", {size}" for size in batch.x.shape[1:])
    advice = f"A batch of x has the shape (B{sizes}): make the model's first layer take that, or reshape x"
    with torch.inference_mode():
        outputs, shape = _shown(module, batch.x, f"inputs ({what})", advice, OF_TYPES)
        kind = task or _kind(federation, shape)
        count = int(shape[-1]) if isinstance(shape, tuple) and len(shape) > 1 else 1
        objective = Objective(kind, federation.objective.loss, federation.objective.metrics)
        classes = count if kind in ("classification", "sequences") else 0
        if shape not in objective.shapes(tuple(batch.y.shape), classes):
            raise WorkloadError(
                f"the model gives {shape} for {what} with labels {tuple(batch.y.shape)}; {kind} asks for "
                f"{_wanted(kind, tuple(batch.y.shape))}{_hint(federation, shape)}"
            )
        check_labels(federation, kind, count)
        _try_functions(objective, objective.like_labels(outputs, batch.y), batch.y)
    return kind, count


def fitted_graphs(federation: Federation, module: torch.nn.Module) -> int:
    """The number of classes that a model tells apart, or of the numbers that it predicts.

    Args:
        federation: graphs of clients with one task.
        module: the model; it is shown two graphs.

    Raises:
        WorkloadError: the model cannot take graphs or has too few outputs, or the loss or a metric does not fit.
    """
    batch, needed = next(iter(federation.client(0, "cpu").train.batches(2))), federation.input_spec(0).classes
    advice = "Its forward(batch) gets x, edge_index and batch as PyTorch Geometric's Batch has them"
    objective = objective_of(federation)
    with torch.inference_mode():
        outputs, shape = _shown(module, batch.x, "graphs", advice)
        if objective.kind == "regression":
            allowed = objective.shapes(tuple(batch.y.shape), 0)
            if shape not in allowed:
                raise WorkloadError(
                    f"the model gives {shape} for {len(batch)} graphs with {needed} numbers each to be predicted; it "
                    f"must give {' or '.join(map(str, allowed))}"
                )
        elif not isinstance(shape, tuple) or len(shape) != 2 or shape[0] != len(batch) or shape[1] < needed:
            raise WorkloadError(
                f"the model gives {shape} for {len(batch)} graphs; it must give one row for each graph, with at least "
                f"{needed} outputs, one for each class"
            )
        _try_functions(objective, objective.like_labels(outputs, batch.y), batch.y)
    return needed if objective.kind == "regression" else int(shape[1])


def _shown(
    module: torch.nn.Module, x: object, what: str, advice: str, of_types: str = ""
) -> tuple[Any, tuple[int, ...] | str]:
    """A model's outputs for ``x``, in evaluation mode, and their shape, or the name of their type if they have none.

    Args:
        advice: what to do if it cannot take ``x``.
        of_types: the same if torch's error speaks of types of numbers.
    """
    module.eval()
    try:
        outputs: Any = module(x)
    except (Exception, SystemExit) as error:  # of a user's own module
        reason = _reason(error)
        advice = of_types if of_types and TYPES.search(reason) else advice
        raise WorkloadError(f"the model cannot take the clients' {what}: {reason}. {advice}") from error
    return outputs, tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__


def _kind(federation: ArrayFederation, shape: object) -> Kind:
    """The data's own guess, but for tables of whole numbers, which are sequences or multi-label."""
    kind, labels = federation.objective.kind, federation.labels
    if kind == "sequences" and shape == (2, *labels.shape[1:]) and not ((labels != 0) & (labels != 1)).any():
        if federation.objective.loss is None:
            check_one_hot(labels, "multilabel")
        return "multilabel"
    return kind


def _wanted(kind: Kind, labels: tuple[int, ...]) -> str:
    if kind == "classification":
        return f"one row of outputs for each sample, ({labels[0]}, number of classes)"
    return f"{(*labels, 'number of classes')}" if kind == "sequences" else f"{labels}"


def _hint(federation: ArrayFederation, shape: tuple[int, ...] | str) -> str:
    """Advice for outputs that are those of classes, where labels would be classes in another form."""
    advice = as_classes(federation.labels) if isinstance(shape, tuple) and len(shape) == 2 and shape[1] > 1 else ""
    return f". Give {advice} for classes, or set task= and give the model as many outputs as labels" if advice else ""


_LABEL_AXES: Mapping[Kind, int] = {"classification": 1, "sequences": 2}


def check_labels(federation: ArrayFederation, kind: Kind, classes: int) -> None:
    """WorkloadError unless every label is one of the classes, or what else the task has."""
    whole = kind in ("classification", "sequences")
    for labels, where in ((federation.labels, "clients"), (federation.test_labels, "test")):
        if (whole and labels.dtype.kind not in "iub") or labels.ndim != _LABEL_AXES.get(kind, labels.ndim):
            of = "each sample's class" if kind == "classification" else "the class of each position of a sample"
            raise WorkloadError(f"{where}: y is {labels.dtype} {labels.shape}; {kind} wants whole numbers, {of} from 0")
        allowed = (0, classes - 1) if whole else (0, 1) if kind == "multilabel" else (-np.inf, np.inf)
        wrong = (
            [edge for edge in (labels.min(), labels.max()) if not allowed[0] <= edge <= allowed[1]]
            if len(labels)
            else []
        )
        if wrong and kind == "multilabel":
            raise WorkloadError(f"{where}: label {wrong[0]} is neither 0 nor 1, and multilabel has no others")
        if wrong:
            raise WorkloadError(
                f"{where}: label {wrong[0]} is out of range for {classes} classes (0 to {classes - 1}), the number of "
                "the model's outputs; number the classes from 0, or give the model more outputs"
            )


def _try_functions(objective: Objective, outputs: torch.Tensor, labels: torch.Tensor) -> None:
    """WorkloadError unless loss and metrics return a number for each sample, or one for all."""
    given = {**({"loss": objective.loss} if objective.loss else {}), **objective.metrics}
    for name, function in given.items():
        try:
            value = function(outputs, labels)
        except (Exception, SystemExit) as error:  # of a user's own function
            alike = " (a regression's come in the labels' shape)" if objective.kind == "regression" else ""
            raise WorkloadError(
                f"{name}: it cannot take outputs {tuple(outputs.shape)}{alike} and labels {tuple(labels.shape)}: "
                f"{_reason(error)}"
            ) from error
        if not isinstance(value, torch.Tensor) or (value.ndim and len(value) != len(labels)):
            found = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise WorkloadError(
                f"{name}: it returned {found} for {len(labels)} samples; it must return a tensor with one number for "
                "each sample, or a single one, their mean"
            )


def _reason(error: BaseException) -> str:
    return " ".join(reason_of(error).split())
