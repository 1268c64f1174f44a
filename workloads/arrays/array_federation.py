"""The federation of arrays: inputs and labels that every process of a node shares, and clients as indices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.federated_data import ClientData, InputSpec, Samples
from raysim.workloads.objective import CLASSIFICATION, Objective
from raysim.workloads.splits.partition import Common, Integers
from raysim.workloads.splits.partition_report import client_table
from raysim.workloads.splits.split_options import Split

if TYPE_CHECKING:
    import pandas

    from raysim.workloads.arrays.array_samples import ArraySamples
    from raysim.workloads.federated_data import Federation


class OwnCache(dict[tuple[str, bool], Samples]):
    """A cache that stays in its process: pickled, it is empty."""

    def __reduce__(self) -> tuple[type[OwnCache], tuple[()]]:
        return OwnCache, ()


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitFederation(Split, ABC):
    """The common part of federations of arrays and of files: a client is the indices of its samples."""

    name: str
    labels: NDArray[Any]
    """Labels of the training samples, [N] or [N, ...]."""
    test_labels: NDArray[Any]
    """Labels of the global test set, [0, ...] for none."""
    class_names: tuple[str, ...] = ()
    """Names of the classes 0, 1, …"""
    synthetic: bool = False
    notes: tuple[str, ...] = ()
    """Findings in the data, shown when a run begins."""
    _common_tests: OwnCache = field(default_factory=OwnCache, init=False, repr=False)
    """(Device, channels last) → the test set of all clients, where they have a common one."""

    @property
    def clients(self) -> int:
        """Number of clients."""
        return self.train.clients

    @property
    def global_test_size(self) -> int:
        """Number of samples of the global test set."""
        return len(self.test_labels)

    def samples(self, client: int) -> int:
        """Number of a client's training samples."""
        return self.train.size(client)

    def total_samples(self, clients: int) -> int:
        """Number of training samples of the first ``clients`` clients."""
        return self.train.total(clients)

    def test_samples(self, client: int) -> int:
        """Number of samples of a client's local test set."""
        return self.local_test.size(client)

    def client_name(self, client: int) -> str:
        """The client's name, or its number."""
        return str(self.client_names[client]) if len(self.client_names) else f"client {client}"

    def client(self, client: int, device: str, channels_last: bool = True) -> ClientData:
        """The client's samples, copied to the device."""
        train = self._training_samples(client, device, channels_last)
        test = self._local_test(client, device, channels_last)
        found = ClientData(client, self.client_name(client), train, test)
        if self.validation is not None:
            found.validation = self._held_out(self.validation.of(client), False, device, channels_last)
        return found

    def _local_test(self, client: int, device: str, channels_last: bool) -> Samples:
        """A client's test set; a common one is the same object for all, so that a worker judges a model on it once."""
        kind, rows = (device, channels_last), self.local_test.of(client)
        if not isinstance(self.local_test, Common):
            return self._held_out(rows, self.local_test_is_global, *kind)
        if kind not in self._common_tests:
            self._common_tests[kind] = self._held_out(rows, self.local_test_is_global, *kind)
        return self._common_tests[kind]

    def global_test(self, start: int, stop: int, device: str) -> Samples:
        """Samples start to stop (exclusive) of the global test set."""
        return self._held_out(np.arange(start, stop), True, device, channels_last=True)

    @abstractmethod
    def _training_samples(self, client: int, device: str, channels_last: bool) -> Samples:
        """Training samples of a client."""

    @abstractmethod
    def _held_out(self, rows: Integers, of_tests: bool, device: str, channels_last: bool) -> Samples:
        """Some of the test or of the training samples, as they are."""

    def pooled(self) -> Self:
        """One client that holds everything."""
        return replace(
            self,
            client_names=np.array(["all clients"]),
            train=self.train.pooled(),
            local_test=self.local_test.pooled(),
            validation=self.validation.pooled() if self.validation else None,
        )

    def manifest(self) -> pandas.DataFrame:
        """A table of who has what (:meth:`raysim.workloads.federated_data.Federation.manifest`)."""
        copied = [self._copied(client) for client in range(self.clients)]
        rows = [part for client, copies in enumerate(copied) for part in (self.train.of(client), copies)]
        federation = cast("Federation", self)  # which a class that has the samples is
        table = client_table(federation, self.labels[np.concatenate(rows)], [len(copies) for copies in copied])
        if self.validation:
            table["validation_samples"] = [self.validation.size(client) for client in range(self.clients)]
        return table

    def _copied(self, client: int) -> Integers:
        """Indices of the inputs of which copies fill the client up."""
        return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayFederation(SplitFederation):
    """Inputs [N, ...] and labels [N] or [N, ...] once, and per client the indices of its parts.

    Tables, token sequences and signals are this as they are; images add normalization and augmentation
    (workloads/images/federation.py). Of any numeric type: models get numbers with a fraction as float32, and all others
    as int64. The arrays may be read-only (shared memory): nothing here writes to them, and what a client needs is
    copied.

    Example::

        train, local_test = partition.cut(partition.iid(len(x), 10, 5, stream("partition")), 0.2, stream("local_test"))
        ArrayFederation(
            name="mine", inputs=x, labels=y, test_inputs=test_x, test_labels=test_y, class_names=("no", "yes"),
            train=train, local_test=local_test,
        )
    """

    inputs: NDArray[Any]
    test_inputs: NDArray[Any]
    vocabulary: int = 0
    """Number of token ids (:attr:`raysim.workloads.federated_data.InputSpec.vocabulary`)."""
    padded: bool = False
    """Whether token 0 is padding (:attr:`raysim.workloads.federated_data.InputSpec.padded`)."""
    categories: tuple[int, ...] = ()
    """Sizes of a table's categorical columns (:attr:`raysim.workloads.federated_data.InputSpec.categories`)."""
    objective: Objective = CLASSIFICATION
    """The objective that models are trained for and judged by."""
    outputs: int = 0
    """Number of a model's outputs, where there are no classes."""

    def input_spec(self, client: int) -> InputSpec:
        """The inputs that every client's model must fit."""
        shape = self.inputs.shape[1:]
        return InputSpec(
            shape,
            len(self.class_names) or self.outputs,
            vocabulary=self.vocabulary,
            padded=self.padded,
            categories=self.categories,
        )

    @property
    def whole_numbers(self) -> bool:
        """Whether models get whole numbers, which may be tokens or categories."""
        return self.inputs.dtype.kind in "biu"

    def _training_samples(self, client: int, device: str, channels_last: bool) -> Samples:
        return self._held_out(self.train.of(client), False, device, channels_last)

    def _held_out(self, rows: Integers, of_tests: bool, device: str, channels_last: bool) -> Samples:
        if not of_tests:
            return self._samples(self.inputs[rows], self.labels[rows], device, channels_last)
        # Where they are: a copy for every client could be many times the test set.
        return self._samples(self.test_inputs, self.test_labels[rows], device, channels_last, rows)

    def global_test(self, start: int, stop: int, device: str) -> Samples:
        """Samples start to stop (exclusive) of the global test set, copied once as they are walked over often."""
        return self._samples(self.test_inputs[start:stop].copy(), self.test_labels[start:stop].copy(), device)

    def _samples(
        self,
        inputs: NDArray[Any],
        labels: NDArray[Any],
        device: str,
        channels_last: bool = True,
        rows: Integers | None = None,
    ) -> ArraySamples:
        from raysim.workloads.arrays.array_samples import ArraySamples

        return ArraySamples(inputs, labels, device, rows)
