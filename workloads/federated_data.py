"""The interface of workloads to the engine: inputs, batches, a client's data and the federation that hands them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.batch_bounds import LastBatch
from raysim.workloads.objective import CLASSIFICATION, Objective

if TYPE_CHECKING:
    import pandas
    import torch

COUNTED_AT_A_TIME = 500
"""Samples whose labels are counted together."""
Stream = Callable[[str], np.random.Generator]
"""Purpose -> an independent generator; the only source of randomness a workload has while it loads."""


@dataclass(frozen=True)
class InputSpec:
    """The inputs that a model must fit: the shape of one, and the number of classes, or of other outputs."""

    input_shape: tuple[int, ...]
    """Channels, height and width of images; of graphs and nodes the width F of a node's features alone."""
    classes: int
    kind: Literal["array", "graph", "nodes"] = "array"
    """Arrays, whole graphs, or the nodes of one graph."""
    name: str = ""
    """Name of the data set whose classes are told apart: two sets of two classes are two tasks. Clients whose tasks
    differ, be it in their names alone, never share input layers or heads (raysim/client_side/sharing.py)."""
    vocabulary: int = 0
    """Number of tokens, where inputs are token ids (0 to vocabulary - 1); 0: inputs are numbers."""
    padded: bool = False
    """Whether token 0 only fills up inputs that are shorter than others, after their last token, so that
    a model passes over it."""
    categories: tuple[int, ...] = ()
    """Number of values of each categorical column of a table. These columns come after the numeric ones,
    each as the number of its category, 0 to categories[i] - 1, in float32 as the rest of the row."""
    edge_width: int = 0
    """Number of attributes of a graph's edge; 0: edges have none."""
    aggregated: bool = False
    """Whether features of nodes are means over neighbors already, Â X, so that a first layer must not spread them."""
    pairs: bool = False
    """Whether a sample is a pair of nodes, joined or not, in the place of a node."""


@dataclass
class Batch:
    """A mini-batch of B inputs and their labels; graphs among the inputs are not to be written to."""

    x: Any
    """Images: float32 [B, C, H, W], by default channels_last; graphs: a GraphBatch of B graphs, nodes:
    a NodeBatch."""
    y: torch.Tensor
    """Labels: int64 [B], or as the federation's objective has them (workloads/objective.py)."""

    def __len__(self) -> int:
        return len(self.y)


class Samples(Protocol):
    """A set of samples that can be walked over in batches, any number of times."""

    def __len__(self) -> int: ...

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        """One pass over the samples in mini-batches.

        With a generator it is a training epoch, shuffled and (where the workload says so) augmented, all of it drawn
        from that generator; a single batch need not be shuffled. Without one the samples come in order, as they are.
        ``last`` is the rule for the remainder, by which `bounds_of_pass` cuts both.
        """
        ...


class NoSamples:
    """An empty set."""

    def __len__(self) -> int:
        return 0

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        """No mini-batch."""
        return iter(())


NO_SAMPLES = NoSamples()


@dataclass(frozen=True)
class ChangedSamples:
    """Samples whose every batch is changed by a function; the order stays."""

    samples: Samples
    change: Callable[[Batch], Batch]

    def __len__(self) -> int:
        return len(self.samples)

    def batches(
        self, batch_size: int, generator: torch.Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        """The batches of the samples, changed."""
        return map(self.change, self.samples.batches(batch_size, generator, last))


@dataclass
class ClientData:
    """One client's data on one device. `test` is its local test set; it and `validation` may be empty."""

    client: int
    name: str
    train: Samples
    test: Samples
    validation: Samples = NO_SAMPLES

    @property
    def samples(self) -> int:
        """Number of training samples, m_i."""
        return len(self.train)

    def class_counts(self, classes: int) -> NDArray[np.int64]:
        """Number of training samples of each class, int64 [classes]: one pass over them in order.

        Copies that fill a client up count, as they do in m_i, so that the sum is m_i.

        Args:
            classes: how many there are, ``task.classes`` in a client task.

        Raises:
            ValueError: a label is not the number of a class.
        """
        counts = np.zeros(classes, np.int64)
        for batch in self.train.batches(COUNTED_AT_A_TIME):
            labels = batch.y.cpu().numpy()
            if labels.ndim != 1 or labels.dtype.kind != "i":
                raise ValueError(
                    f"client {self.client}: classes can be counted where labels are one number of a class for each "
                    f"sample, and these are {labels.dtype} {labels.shape}. A method that counts them declares "
                    "Traits(classification=True)"
                )
            if labels.max() >= classes or labels.min() < 0:
                wrong = labels.max() if labels.max() >= classes else labels.min()
                raise ValueError(f"client {self.client}: a label is {wrong}, and there are {classes} classes")
            counts += np.bincount(labels, minlength=classes)
        return counts


class Federation(Protocol):
    """All clients' data, small enough to be shared by every process of a node; a client is an index into it.

    A workload is a dataclass of options with ``load(stream) -> Federation``. So that a run can be checked before it
    starts, it may also have ``inputs`` (the kind of its tasks) and ``sketch(stream) -> Federation | None``: the same
    clients with the same sizes and tasks but without their samples, at a small part of the time of ``load``.
    None is for where only loading tells; missing data and a split that cannot be are a WorkloadError, as in ``load``.
    A federation whose models do not tell classes apart also has ``objective`` (workloads/objective.py).
    """

    @property
    def name(self) -> str:
        """The name of the data, for tables and titles."""
        ...

    @property
    def synthetic(self) -> bool:
        """True if the samples are made up; every output of a run then says so."""
        ...

    @property
    def clients(self) -> int:
        """Number of clients."""
        ...

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        ...

    @property
    def global_test_size(self) -> int:
        """Number of samples of the common test set; 0 where there is none."""
        ...

    def client_name(self, client: int) -> str:
        """Name of a client: its real site, or its number."""
        ...

    def input_spec(self, client: int) -> InputSpec:
        """The inputs that the client's model must fit."""
        ...

    def samples(self, client: int) -> int:
        """Number of the client's training samples m_i, augmented copies that fill it up included."""
        ...

    def total_samples(self, clients: int) -> int:
        """Σ m_i over the first `clients` clients, without asking each of them: a population may be millions."""
        ...

    def test_samples(self, client: int) -> int:
        """Number of samples of the client's local test set."""
        ...

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        """Gather the client's tensors on the device; keep the result, it is not cached here.

        Without `channels_last`, images are contiguous [B, C, H, W]: for models without convolutions, which flatten
        them.
        """
        ...

    def global_test(self, start: int, stop: int, device: str) -> Samples:
        """Samples start to stop (exclusive) of the global test set."""
        ...

    def pooled(self) -> Federation:
        """One client that holds the union of all clients' training samples (fills included) and local tests."""
        ...

    def manifest(self) -> pandas.DataFrame:
        """A table of who has what, one row per client.

        Its columns are client, name, samples, test_samples, class_0 .. (of `samples`) and filled (copies in it); its
        `attrs` hold workload, synthetic and class_names.
        """
        ...


def distinct_input_specs(federation: Federation) -> tuple[InputSpec, ...]:
    """Every task that a client has, once; federations whose clients are all alike need not list them."""
    return tuple(getattr(federation, "input_specs", ())) or (federation.input_spec(0),)


ONE_CLASS = "the training data has one class alone: any model soon gives the right answer, and accuracies say nothing"


def has_one_class(federation: Federation) -> bool:
    """Whether there is nothing to tell apart: a client's task has one class, or all training images have one label."""
    labels = getattr(federation, "labels", None)
    if objective_of(federation).kind != "classification":
        return False
    if labels is not None and len(labels) and (labels == labels[0]).all():
        return True
    return any(task.classes == 1 for task in distinct_input_specs(federation))


def objective_of(federation: Federation) -> Objective:
    """The objective that a federation's models are trained for and judged by."""
    found: Objective = getattr(federation, "objective", CLASSIFICATION)
    return found


def exchanged_before_training(federation: Federation) -> tuple[int, int]:
    """Bytes that all clients send and receive before the first round (``workload.exchange``); (0, 0) if none do."""
    of_client: Callable[[int], tuple[int, int]] | None = getattr(federation, "exchanged_bytes", None)
    if of_client is None:
        return 0, 0
    sent, received = zip(*map(of_client, range(federation.clients)), strict=True)
    return sum(sent), sum(received)
