"""Torch Datasets, read item by item, and columns of pandas as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError, reason_of

READ_TWICE = 1000
"""At most this many items, spread evenly, are read a second time, to find a Dataset that is random."""


def read_items(data: Any, where: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """All items of a Dataset of pairs (x, y).

    Raises:
        WorkloadError: it has no length, no such pairs, or not the same ones when they are read again.
    """
    count = _length(data, where)
    if count == 0:
        raise WorkloadError(f"{where}: it has no sample; leave it out or give it at least one")
    pairs = [_pair(data, index, where) for index in range(count)]
    for index in dict.fromkeys(np.linspace(0, count - 1, min(count, READ_TWICE)).astype(int).tolist()):
        again = _pair(data, index, where)
        if not all(np.array_equal(one, two, equal_nan=two.dtype.kind == "f") for one, two in zip(pairs[index], again)):  # noqa: B905
            raise WorkloadError(
                f"{where}: the Dataset returned something else when item {index} was read again, and a run must be "
                "repeatable; leave out transforms that are random (augmentation), and let it return what it holds"
            )
    if _length(data, where) != count:
        raise WorkloadError(
            f"{where}: the Dataset had {count} items and now has {_length(data, where)}; it must not change while it "
            "is read"
        )
    for number, name in enumerate("xy"):
        odd = next((index for index, pair in enumerate(pairs) if pair[number].shape != pairs[0][number].shape), None)
        if odd is not None:
            raise WorkloadError(
                f"{where}: {name} of item {odd} has shape {pairs[odd][number].shape}, but that of item 0 "
                f"{pairs[0][number].shape}; all samples must have one shape"
            )
    return np.stack([x for x, _ in pairs]), np.stack([y for _, y in pairs])


def _length(data: Any, where: str) -> int:
    try:
        return len(data)
    except TypeError as error:
        raise WorkloadError(
            f"{where}: {type(data).__name__} has no length; give a Dataset with __len__ and __getitem__, or a pair "
            "(x, y) of arrays"
        ) from error


def _pair(data: Any, index: int, where: str) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        item = data[index]
    except (Exception, SystemExit) as error:  # code of a user's own
        raise WorkloadError(f"{where}: item {index} of the Dataset cannot be read: {reason_of(error)}") from error
    if not (isinstance(item, tuple | list) and len(item) == 2):
        what = f"{len(item)} values" if isinstance(item, tuple | list) else type(item).__name__
        raise WorkloadError(f"{where}: item {index} of the Dataset is {what}; each must be a pair (x, y)")
    try:
        x, y = (np.array(untensored(part)) for part in item)  # copies: an item may be a view of what the next one fills
    except ValueError as error:
        raise WorkloadError(f"{where}: item {index} of the Dataset is no array: {error}") from error
    return x, y


def check_tensor(value: Any) -> None:
    """ValueError unless a tensor is a plain one, with a value for each entry."""
    kinds = {"is_meta": "on the device meta, without values", "is_quantized": "quantized", "is_nested": "nested"}
    kind = next((words for name, words in kinds.items() if getattr(value, name, False)), "")
    layout = str(getattr(value, "layout", "torch.strided"))
    if kind or layout != "torch.strided":
        raise ValueError(f"a tensor that is {kind or layout.removeprefix('torch.').replace('_', ' ')}")


def untensored(value: Any) -> Any:
    """A tensor as a numpy array; anything else as it is."""
    if not hasattr(value, "detach"):
        return value
    check_tensor(value)
    found = value.detach().cpu()
    return (found.float() if str(found.dtype) == "torch.bfloat16" else found).numpy()


def as_numpy(value: Any) -> NDArray[Any]:
    """Columns of pandas as an array; numbers that may be missing (``Int64``) as int64, or float64 with NaN."""
    found: NDArray[Any] = value.to_numpy()
    if found.dtype != object or not hasattr(value, "isna"):
        return found
    from pandas.api.types import is_integer_dtype, is_numeric_dtype

    kinds = [*value.dtypes] if hasattr(value, "dtypes") and value.ndim == 2 else [value.dtype]
    if not all(map(is_numeric_dtype, kinds)):
        return found
    whole = all(map(is_integer_dtype, kinds)) and not np.asarray(value.isna()).any()
    return np.asarray(value.to_numpy(dtype=np.int64) if whole else value.to_numpy(dtype=np.float64, na_value=np.nan))
