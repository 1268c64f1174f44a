"""The parameters that clients of different tasks can share: seven data sets of two classes are seven tasks, not one.

Their models differ in the width of inputs and the number of classes, and where these happen to agree, in what the
numbers mean: a head that tells mutagenic molecules from others is of no use to one that tells letters apart. So what a
method wants to share is shared without

- the input layer and the head, weights and biases, and what else the model says fits one task
  (:func:`raysim.workloads.models.classifier.task_specific`);
- every layer that has not the same shapes in all clients' models.

With one task, one data set cut over clients, everything that the method names is shared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from raysim.workloads.models.classifier import task_specific


def common_names(modules: Sequence[torch.nn.Module]) -> set[str]:
    """Names of the parameters and buffers that clients can share, from one model for each of their tasks."""
    tensors = [[*module.named_parameters(), *module.named_buffers()] for module in modules]
    shapes = [{name: tensor.shape for name, tensor in own} for own in tensors]
    every = set().union(*shapes)
    differ = {_layer_of(name) for name in every if any(own.get(name) != shapes[0].get(name) for own in shapes)}
    specific = {part for module in modules for part in task_specific(module)}
    return {name for name in every if _layer_of(name) not in differ and not _within(name, specific)}


def nothing_to_share(federation: str, wanted: Collection[str]) -> str:
    """A note for a method of whose shared parameters none are left; empty if some are."""
    named = ", ".join(sorted(wanted)[:3]) + (", …" if len(wanted) > 3 else "")
    return (
        f"the clients of {federation} have different tasks, and of what this method shares ({named}) nothing fits all "
        "of them: input layers and heads stay with their client. Take a model with layers between them, or "
        "--method local"
    )


def _within(name: str, parts: Collection[str]) -> bool:
    """Whether a parameter or buffer is one of these parts of a model, or lies in one."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def _layer_of(name: str) -> str:
    """The dotted name of the module that a parameter or buffer belongs to."""
    return name.rpartition(".")[0]
