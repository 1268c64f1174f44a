"""Gradients of a client's loss on a mini-batch or on all its training samples, and at points that are left again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from raysim.config.sections import Training
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Loss
from raysim.workloads.batch_bounds import KEEP
from raysim.workloads.federated_data import Batch, Samples


def full_gradient(model: FlatModel, samples: Samples, task: ClientTask, loss: Loss | None = None) -> torch.Tensor:
    """The gradient ∇f(θ) of the mean loss over all samples, at the model's present values.

    The mean is by samples: (1/m) Σ_b |b| ∇f_b(θ) over batches b of ``task.evaluation_batch`` samples, which bound the
    memory. Samples come in order and are not augmented, so that nothing of it is random but dropout.

    The module is in the mode of local training: BatchNorm normalizes by the statistics of each batch, as in local
    steps, whose mean the gradient then is; with ``training.freeze_batchnorm`` by its running ones. Running statistics,
    and all else of the model but its gradient, are put back.

    Args:
        loss: scalar loss of a mini-batch; None: the one that the data asks for (``task.loss``).

    Returns:
        A new vector [P] over all parameters; the shared ones are its last p entries.
    """
    return gradient_sum(model, samples, task, loss) / len(samples)


def gradient_sum(model: FlatModel, samples: Samples, task: ClientTask, loss: Loss | None = None) -> torch.Tensor:
    """:func:`full_gradient` before it is divided by the number of samples: Σ_b |b| ∇f_b(θ) [P]."""
    training_mode(model.module, task.training)
    total = torch.zeros_like(model.gradient)
    with restored(model):
        for batch in samples.batches(task.evaluation_batch, last=KEEP):
            total = total + batch_gradient(model, batch, task, loss) * len(batch)
    return total


def batch_gradient(model: FlatModel, batch: Batch, task: ClientTask, loss: Loss | None = None) -> torch.Tensor:
    """The gradient of the mean loss of a mini-batch at the model's present values: a new vector [P].

    The module stays in its present mode; in that of training BatchNorm's running statistics move.
    """
    model.gradient.zero_()
    backward(model, batch, task, loss or task.loss)
    return model.gradient.clone()


def backward(model: FlatModel, batch: Batch, task: ClientTask, loss: Loss) -> torch.Tensor:
    """Add the gradient of a mini-batch to those that the parameters hold; returns the loss, a scalar."""
    with autocast(task.training.precision, model.device):
        value = loss(model.module, batch)
    value.backward()
    return value


@contextmanager
def restored(model: FlatModel) -> Iterator[None]:
    """Put parameters and buffers back at the end as they are now, BatchNorm's counters too; gradients stay."""
    before = model.buffer.clone()
    integers = [(buffer, buffer.clone()) for buffer in model.module.buffers() if not buffer.is_floating_point()]
    try:
        yield
    finally:
        model.buffer.copy_(before)
        for buffer, value in integers:
            buffer.copy_(value)


def autocast(precision: str, device: str) -> AbstractContextManager[Any]:
    """The context in which forward passes of local training run: float32, or bfloat16 as torch chooses.

    With ``bf16`` parameters, gradients and the optimizer stay float32; matrix products and convolutions are computed in
    bfloat16 (8 bits of mantissa). Evaluation is always in float32.
    """
    return torch.autocast(torch.device(device).type, torch.bfloat16) if precision == "bf16" else nullcontext()


def training_mode(module: torch.nn.Module, training: Training) -> None:
    """Training mode for all of the module but, with ``training.freeze_batchnorm``, its BatchNorm layers."""
    module.train()
    if training.freeze_batchnorm:
        for part in module.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
                part.eval()
