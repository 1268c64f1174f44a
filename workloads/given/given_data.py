"""Data and models that :func:`raysim.run` was given as objects: a run's config names them by their digests alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec, Stream
from raysim.workloads.given.arrays import GatheredArrays
from raysim.workloads.given.labels import check_one_hot
from raysim.workloads.naming import shown, unfit
from raysim.workloads.objective import Figure, Kind, Objective
from raysim.workloads.option_types import Help, NonNegativeInt, ShareBelowOne
from raysim.workloads.splits.partition import Common, Partition
from raysim.workloads.splits.split_options import ValidationShare, held_out
from raysim.workloads.text.tokens import TokenOptions

if TYPE_CHECKING:
    import torch

Functions = tuple[Figure | None, Mapping[str, Figure]]
"""A loss of one's own, if there is one, and metrics by name."""
MAX_CLASSES = 2**20
"""Largest number of classes that labels alone may ask for."""
GIVEN = "given"
"""The name of both in a config."""


def missing(kind: str) -> WorkloadError:
    """The error for a run whose data or model only Python can give."""
    what, argument, read = "model", "model", "the trained one, raysim.load_model(FOLDER, model=…)"
    if kind == "workload":
        what, argument, read = "data", "clients", "a client's model, raysim.load_model(FOLDER, client=…, clients=…)"
    return WorkloadError(
        f"the {what} of this run was given in Python and is not in its folder: go on from Python, with the same "
        f"{what}: raysim.run(…, {argument}=…, resume=FOLDER); or, to read {read}"
    )


@dataclass(frozen=True)
class Holding:
    """A section of a config that stands for Python objects: what is given is in ``held``, which is no option."""

    held: Any = field(default=None, init=False, repr=False, compare=False)

    def holding(self, held: Any, **more: Any) -> Self:
        """The same section with this in it, and values of other fields that are no options."""
        changed = copy.copy(self)
        vars(changed).update(more, held=held)
        return changed


@dataclass(frozen=True)
class GivenClients(Holding):
    """The common part of arrays and graphs given in Python (``raysim.run(…, clients=…, test=…)``)."""

    title: Annotated[str, Help("what the data is called in tables and pictures")] = "own data"
    digest: Annotated[str, Help("SHA-256 of the data")] = ""
    classes: Annotated[NonNegativeInt, Help("number of classes or outputs; 0: as many as the model has")] = 0
    loss: Annotated[str, Help("name of the loss that was given; empty: that of the task")] = ""
    metrics: Annotated[tuple[str, ...], Help("names of the metrics that were given")] = ()
    code_digest: Annotated[str, Help("SHA-256 of loss and metrics: their sources and attributes")] = ""
    test_share: Annotated[
        ShareBelowOne,
        Help("share of a client's samples that is its local test set, which it does not train on; 0: none"),
    ] = 0.0
    validation_share: ValidationShare = 0.0
    functions: Functions = field(default=(None, {}), init=False, repr=False, compare=False)
    """The loss and the metrics themselves, which are no options."""

    def __post_init__(self) -> None:
        if reason := self.title and unfit(self.title):
            raise WorkloadError(f"title: the data {shown(self.title)} {reason}; give a shorter or plainer title")


@dataclass(frozen=True)
class GivenData(GivenClients, TokenOptions):
    """Arrays or texts given in Python. ``load`` draws from the streams local_test and validation."""

    name: ClassVar[str] = GIVEN
    inputs: ClassVar[Literal["array", "graph"]] = "array"

    task: Annotated[
        Literal["auto", "classification", "sequences", "multilabel", "regression"],
        Help("what is to be learned; auto: what the labels and the model's outputs look like"),
    ] = "auto"

    def objective(self) -> Objective:
        """The objective of the model. As long as the task is not known, the labels say what they can."""
        loss, metrics = self.functions
        kind: Kind = "classification"
        if self.task != "auto":
            kind = self.task
        elif self.held is not None and self.held.labels.dtype.kind == "f":
            kind = "regression"
        elif self.held is not None and self.held.labels.ndim > 1:
            kind = "multilabel" if self.held.labels.dtype.kind == "b" else "sequences"
        return Objective(kind, loss, metrics)

    def load(self, stream: Stream) -> ArrayFederation:
        """The clients' data. WorkloadError where it was not given, or has one-hot labels and nothing to say why."""
        if self.held is None:
            raise missing("workload")
        own: GatheredArrays = self.held
        tests: Partition | Common | None = own.test
        if tests is None and not self.test_share:
            tests = Common(np.zeros(0, np.int64), own.train.clients)
        objective = self.objective()
        if self.task == "auto" and objective.loss is None and objective.kind in ("regression", "multilabel"):
            check_one_hot(own.labels, objective.kind)
        outputs = self.classes or _outputs(own.labels, objective.kind)
        has_classes = objective.kind in ("classification", "sequences")
        split = held_out(own.train, tests, self.test_share, self.validation_share, stream, own.names)
        inputs, test_inputs, vocabulary = own.inputs, own.test_inputs, 0
        notes: tuple[str, ...] = ()
        if inputs.dtype.kind == "O":
            training = np.unique(split.train.pooled().indices)
            found = self.as_tokens([*inputs, *test_inputs], training)
            inputs, test_inputs = found.ids[: len(inputs)], found.ids[len(inputs) :]
            vocabulary, notes = found.vocabulary, (f"{self.title}: {found.note}",)
        return ArrayFederation(
            name=self.title,
            inputs=inputs,
            labels=own.labels,
            test_inputs=test_inputs,
            test_labels=own.test_labels,
            class_names=tuple(map(str, range(outputs))) if has_classes else (),
            outputs=outputs,
            objective=objective,
            vocabulary=vocabulary,
            padded=vocabulary > 0,
            notes=notes,
            **vars(split),
        )

    def sketch(self, stream: Stream) -> ArrayFederation:
        """The same: no sample is copied before a client asks for its own."""
        return self.load(stream)


def _outputs(labels: NDArray[Any], kind: Kind) -> int:
    """The number of outputs that labels ask for, as long as no model says it."""
    if kind in ("classification", "sequences"):
        if labels.max() >= MAX_CLASSES:
            raise WorkloadError(
                f"label {labels.max()} would make {int(labels.max()) + 1} classes, and at most {MAX_CLASSES} are "
                "allowed; number the classes from 0, or say task='regression'"
            )
        return int(labels.max()) + 1
    return int(labels.shape[1]) if labels.ndim > 1 else 1


@dataclass(frozen=True)
class GivenModel(Holding):
    """A model given in Python: ``raysim.run(…, model=Net())`` or ``model=Net``.

    It holds a module, which keeps its initial values, or what makes one.
    """

    name: ClassVar[str] = GIVEN

    class_name: Annotated[str, Help("name of its class or function")] = ""
    digest: Annotated[
        str, Help("SHA-256 of its source, structure, attributes and, of a module, its initial values")
    ] = ""

    batch_norm: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether the module has BatchNorm layers, which is no option."""

    def build(self, inputs: InputSpec) -> torch.nn.Module:
        """A new module: a copy of the one that was given, or what the function makes."""
        if self.held is None:
            raise missing("model")
        return made(self.held, inputs)


def made(held: Any, inputs: InputSpec) -> torch.nn.Module:
    """The module that a module or a function, of no argument or of the task, stands for."""
    import torch

    if isinstance(held, torch.nn.Module):
        return copy.deepcopy(held)
    module: torch.nn.Module = held(inputs) if required_arguments(held) else held()
    return module


def required_arguments(held: Any) -> list[str]:
    """The names of the arguments that what makes a module must have.

    Raises:
        WorkloadError: there are more than one, the task.
    """
    import inspect

    try:
        parameters = inspect.signature(held).parameters.values()
    except (TypeError, ValueError) as error:
        raise WorkloadError(f"model: {held!r} is no class or function that makes a torch module") from error
    wanted = [
        entry.name
        for entry in parameters
        if entry.default is entry.empty and entry.kind in (entry.POSITIONAL_ONLY, entry.POSITIONAL_OR_KEYWORD)
    ]
    if len(wanted) > 1:
        raise WorkloadError(
            f"model: {getattr(held, '__qualname__', held)} asks for {', '.join(wanted)}, and it is given the task "
            "alone (task.input_shape, task.classes, task.edge_width); give the others default values, or give a "
            "function of the task, such as lambda task: Net(task.input_shape[0], task.classes)"
        )
    return wanted
