"""Data given in Python, as arrays: pairs (x, y) and torch Datasets, read, checked and put together for all clients."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.given.items import as_numpy, read_items, untensored
from raysim.workloads.naming import check_names
from raysim.workloads.splits.partition import Partition
from raysim.workloads.text.tokens import check_texts

Array = NDArray[Any]
FORMS = "a pair (x, y) of arrays or tensors, x also a list of texts, or a torch Dataset of such pairs"


@dataclass(frozen=True, eq=False)
class ClientSplit(Sequence[tuple[Array, Array]]):
    """One data set cut over clients: a sequence of each one's (x, y). What :func:`raysim.split` returns."""

    inputs: Array
    labels: Array
    train: Partition
    names: NDArray[np.str_]
    """Names of the clients; empty if they have numbers."""

    def __len__(self) -> int:
        return self.train.clients

    @overload
    def __getitem__(self, client: int) -> tuple[Array, Array]: ...

    @overload
    def __getitem__(self, client: slice) -> Sequence[tuple[Array, Array]]: ...

    def __getitem__(self, client: int | slice) -> tuple[Array, Array] | Sequence[tuple[Array, Array]]:
        if isinstance(client, slice):
            return [self[one] for one in range(*client.indices(len(self)))]
        own = self.train.of(client + len(self) if client < 0 else client)
        return self.inputs[own], self.labels[own]


@dataclass(frozen=True, eq=False)
class GatheredArrays:
    """All clients' training samples [N, ...] and the test samples [M, ...], with who owns which.

    Inputs that are texts are arrays [N] and [M] of objects.
    """

    inputs: Array
    labels: Array
    train: Partition
    names: NDArray[np.str_]
    test_inputs: Array
    test_labels: Array
    test: Partition | None = None
    """Every client's own test samples, if they were given for each."""

    def digest(self) -> str:
        """SHA-256 of all of it."""
        parts = [self.inputs, self.labels, self.test_inputs, self.test_labels, self.names]
        parts += [self.train.indices, self.train.offsets]
        if self.test is not None:
            parts += [self.test.indices, self.test.offsets]
        return digest_of(parts)


def digest_of(parts: Sequence[Array], head: str = "") -> str:
    """SHA-256 of a text and the types, shapes and values of arrays."""
    found = hashlib.sha256(head.encode())
    for part in parts:
        found.update(f"{part.dtype.str} {part.shape} ".encode())
        if part.dtype.kind == "O":  # texts
            for text in part.tolist():
                encoded = text.encode("utf-8", "surrogatepass")
                found.update(len(encoded).to_bytes(8) + encoded)
        else:
            found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


def gather(clients: object, test: object = None) -> GatheredArrays:
    """Read and check the data of all clients.

    Args:
        clients: what :func:`raysim.split` returned, or a list of every client's data or a dict name → data, each of
            them a pair (x, y) of arrays or tensors, or a torch Dataset.
        test: one such data, the global test set; or a list or dict of one for each client; None for none.

    Raises:
        WorkloadError: it is not that, or not sound.
    """
    if isinstance(clients, ClientSplit):
        inputs, labels, train, names = clients.inputs, clients.labels, clients.train, clients.names
    else:
        named = each_client(clients, "clients")
        names = np.array([name for name, _ in named] if isinstance(clients, Mapping) else [], dtype=np.str_)
        inputs, labels, train = _together([(f"client {name}", data) for name, data in named])
    if test is None:
        return GatheredArrays(inputs, labels, train, names, inputs[:0], labels[:0])
    if isinstance(test, Mapping) or (isinstance(test, list) and not _is_pair(test)):
        tests = tests_of_clients(test, names, train.clients)
        test_inputs, test_labels, own_tests = _together([(f"the test of client {name}", data) for name, data in tests])
    else:
        (test_inputs, test_labels), own_tests = read(test, "test"), None
    _check_alike("test", test_inputs, test_labels, "the clients", inputs, labels)
    return GatheredArrays(inputs, labels, train, names, test_inputs, test_labels, own_tests)


def read(data: object, where: str) -> tuple[Array, Array]:
    """The inputs [N, ...], or texts [N] as objects, and the labels [N, ...] of one data, checked.

    Raises:
        WorkloadError: with ``where``, what is wrong with it.
    """
    if _is_pair(data):
        x, y = (_array(part, f"{where}: {name}") for part, name in zip(data, "xy", strict=True))  # type: ignore[call-overload]
    elif _is_tensor_dataset(data):  # which need not be read one by one
        x, y = (_array(part, f"{where}: {name}") for part, name in zip(data.tensors, "xy", strict=True))  # type: ignore[attr-defined]
    elif hasattr(data, "__getitem__") and not hasattr(data, "dtype") and not isinstance(data, list | Mapping | str):
        x, y = (_array(part, f"{where}: {name}") for part, name in zip(read_items(data, where), "xy", strict=True))
    else:
        raise WorkloadError(f"{where}: {type(data).__name__} is no data for training; give {FORMS}")
    if len(x) != len(y):
        raise WorkloadError(f"{where}: x has {len(x)} samples and y {len(y)}; give one label for each input")
    if len(x) == 0:
        raise WorkloadError(f"{where}: it has no sample; leave it out or give it at least one")
    for name, part in (("x", x), ("y", y)):
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            first = int(np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(axis=1))[0])
            raise WorkloadError(
                f"{where}: {name} holds NaN or infinite values, first in sample {first}; remove or replace them"
            )
    return x, y


def _texts(value: Any, where: str) -> Array | None:
    """A sequence whose first item is a text, as objects [N]; None for any other. WorkloadError if one is no text."""
    value = value.to_numpy() if hasattr(value, "to_numpy") else value
    items = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    if not (isinstance(items, list | tuple) and items and isinstance(items[0], str)):
        return None
    check_texts(items, where, "sample", 0)
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found


def _array(value: Any, where: str) -> Array:
    if where.endswith(": x") and (texts := _texts(value, where)) is not None:
        return texts
    try:
        value = as_numpy(value) if hasattr(value, "to_numpy") else untensored(value)
    except ValueError as error:
        raise WorkloadError(f"{where}: {error}; give a dense one: tensor.to_dense() or .dequantize()") from error
    if hasattr(value, "toarray"):  # of SciPy
        raise WorkloadError(f"{where}: a sparse matrix; give a dense array: x.toarray()")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise WorkloadError(f"{where}: {value.mask.sum()} of its values are masked; fill them in: x.filled(0), say")
    try:
        found = np.asarray(value)
    except ValueError as error:  # rows of several lengths
        raise WorkloadError(f"{where}: its samples have different shapes ({error}); give them one shape") from error
    if found.dtype.kind not in "fiub":
        raise WorkloadError(
            f"{where}: type {found.dtype} is no number; give an array or a tensor of numbers (categories as 0, 1, …)"
        )
    if found.ndim == 0:
        raise WorkloadError(f"{where}: a single number; give an array whose first axis counts the samples")
    native = found.dtype.newbyteorder("=")
    # torch takes neither axes that run backwards, as those of x[..., ::-1], nor another machine's order of bytes.
    if found.dtype != native or min(found.strides) < 0:
        found = np.ascontiguousarray(found, native)
    if found.dtype in (np.uint16, np.uint32, np.uint64):
        found = found.astype(np.int64)
    return found.astype(np.float32) if found.dtype == np.longdouble else found


def _is_pair(data: object) -> bool:
    """Whether it is (x, y): a tuple of two, or a list of two arrays."""
    if isinstance(data, list):
        return len(data) == 2 and all(hasattr(part, "dtype") for part in data)
    return isinstance(data, tuple) and len(data) == 2


def _is_tensor_dataset(data: object) -> bool:
    """Whether it is torch's TensorDataset of two tensors; a class that inherits from it may return other items."""
    if not hasattr(data, "tensors"):
        return False
    from torch.utils.data import TensorDataset

    return type(data) is TensorDataset and len(data.tensors) == 2


def each_client(data: object, what: str) -> list[tuple[str, object]]:
    """(name or number, data) of every client."""
    if isinstance(data, Mapping):
        found = [(_name(name, what), part) for name, part in data.items()]
        twice = [name for name, count in Counter(name for name, _ in found).items() if count > 1]
        if twice:
            raise WorkloadError(f"{what}: two of its keys are called {twice[0]!r}; give each client a name of its own")
    elif isinstance(data, list | tuple) and not _is_pair(data):
        found = [(str(number), part) for number, part in enumerate(data)]
    else:
        one = _is_pair(data) or (hasattr(data, "__getitem__") and not isinstance(data, str))
        hint = "; cut one data set over clients with raysim.split(data, clients=10)" if one else ""
        raise WorkloadError(
            f"{what}: {type(data).__name__} is not allowed. Allowed: a list or a dict (name → data) with the data of "
            f"every client{hint}"
        )
    if not found:
        raise WorkloadError(f"{what}: there is none; give the data of at least one client")
    return found


def _name(key: object, what: str) -> str:
    """A client's name from the key of a dict."""
    if not isinstance(key, str | int | np.integer) or isinstance(key, bool):
        raise WorkloadError(f"{what}: the key {key!r} is no name; give each client a text or a whole number")
    name = str(key)
    check_names([name], what)
    return name


def site_names(sites: object) -> NDArray[np.str_]:
    """The name of every sample's client, as text; WorkloadError for one that is no name."""
    given = np.asarray(sites)
    if given.dtype.kind == "U" and isinstance(sites, list | tuple):
        given = np.asarray(sites, object)  # text beside a missing value, which has become text
    if given.dtype.kind == "f" and np.isnan(given).any():
        _name(float("nan"), "sites")
    if given.dtype.kind in "OU":
        for name in dict.fromkeys(given.ravel().tolist()):
            _name(name, "sites")
    return given.astype(np.str_)


def tests_of_clients(test: object, names: NDArray[np.str_], clients: int) -> list[tuple[str, object]]:
    """The tests in the order of the clients, whose names in a dict are their numbers where they have no others."""
    found = each_client(test, "test")
    known = [str(name) for name in names] or [str(client) for client in range(clients)]
    if isinstance(test, Mapping):
        given = dict(found)
        wrong = sorted(set(given) ^ set(known))
        if wrong:
            numbered = "" if len(names) else f" (0 to {clients - 1}, as clients are given in a list)"
            raise WorkloadError(
                f"test: it must have the same names as clients{numbered}, and {wrong[0]!r} is in one of them only"
            )
        return [(name, given[name]) for name in known]
    if len(found) != clients:
        raise WorkloadError(
            f"test: {len(found)} test sets for {clients} clients; give one for all, as a pair (x, y) or a Dataset, or "
            "one for each client"
        )
    numbers = sorted((name for name in known if name.isdecimal()), key=int)
    if len(numbers) == len(known) and known == sorted(known) != numbers:
        raise WorkloadError(
            f"test: the clients are called {', '.join(known[:3])}, …, in the order of texts, and a list of test sets "
            "would give some of them those of others; give a dict, name → test set"
        )
    return [(name, part) for name, (_, part) in zip(known, found, strict=True)]


def _together(parts: Sequence[tuple[str, object]]) -> tuple[Array, Array, Partition]:
    """All inputs and all labels of what was given, each with its name for errors, and who owns which."""
    wheres = [where for where, _ in parts]
    inputs, labels = zip(*(read(data, where) for where, data in parts), strict=True)
    for where, x, y in zip(wheres[1:], inputs[1:], labels[1:], strict=True):
        _check_alike(where, x, y, wheres[0], inputs[0], labels[0])
    offsets = np.cumsum([0, *map(len, labels)]).astype(np.int64)
    return np.concatenate(inputs), np.concatenate(labels), Partition(np.arange(offsets[-1]), offsets)


def _check_alike(where: str, x: Array, y: Array, other: str, other_x: Array, other_y: Array) -> None:
    for name, one, two in (("x", x, other_x), ("y", y, other_y)):
        if one.shape[1:] != two.shape[1:]:
            raise WorkloadError(
                f"{where}: a sample's {name} has shape {one.shape[1:]}, but that of {other} {two.shape[1:]}; "
                "all samples must have one shape"
            )
        if (one.dtype.kind == "O") != (two.dtype.kind == "O"):
            held, other_held = ("texts" if part.dtype.kind == "O" else "numbers" for part in (one, two))
            raise WorkloadError(
                f"{where}: {name} holds {held}, but that of {other} {other_held}; give both as one kind"
            )
        if (one.dtype.kind == "f") != (two.dtype.kind == "f"):
            raise WorkloadError(
                f"{where}: {name} is {one.dtype}, but that of {other} {two.dtype}; give both as whole numbers or both "
                "as numbers with a fraction"
            )
