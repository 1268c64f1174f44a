"""Whether a model and the data that were given in Python go together, found by showing it two samples."""

from __future__ import annotations

from typing import Any

import torch

from workloads.array_federation import ArrayFederation
from workloads.errors import WorkloadError


def outputs_of(federation: ArrayFederation, module: torch.nn.Module) -> int:
    """The number of a model's outputs for a sample, which is that of the classes.

    Raises:
        WorkloadError: the model cannot take the inputs, or gives something else than one row of outputs for each.
    """
    batch = next(iter(federation.client(0, "cpu").train.batches(2)))
    what = f"x of {str(batch.x.dtype).removeprefix('torch.')} {tuple(batch.x.shape)}"
    module.eval()
    try:
        with torch.inference_mode():
            outputs: Any = module(batch.x)
    except Exception as error:  # of a user's own module
        reason = " ".join(str(error).split())
        raise WorkloadError(
            f"the model cannot take the clients' inputs ({what}): {type(error).__name__}: {reason}. "
            "Numbers with a fraction come as float32 and all others as int64: convert x, or the model"
        ) from error
    shape = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2 or len(outputs) != len(batch.y):
        raise WorkloadError(
            f"the model gives {shape} for {what}; it must give one row of outputs for each sample, "
            f"({len(batch.y)}, number of classes)"
        )
    return int(outputs.shape[1])


def check_labels(federation: ArrayFederation, classes: int) -> None:
    """WorkloadError unless every label is one of the classes."""
    for labels, where in ((federation.labels, "clients"), (federation.test_labels, "test")):
        if labels.ndim != 1 or labels.dtype.kind not in "iub":
            raise WorkloadError(
                f"{where}: y is {labels.dtype} {labels.shape}; give each sample one whole number, its class from 0"
            )
        wrong = [] if not len(labels) else [edge for edge in (labels.min(), labels.max()) if not 0 <= edge < classes]
        if wrong:
            raise WorkloadError(
                f"{where}: label {wrong[0]} is out of range for {classes} classes (0 to {classes - 1}), the number of "
                "the model's outputs; number the classes from 0, or give the model more outputs"
            )
