"""The entries of a shared vector that noise and codecs may change: those of parameters that are trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from raysim.method import SharedTensor, Vector


def trained_entries(tensors: Sequence[SharedTensor]) -> NDArray[np.bool_]:
    """Whether an entry belongs to a parameter that is trained [d]."""
    return _entries(tensors, (tensor.trained for tensor in tensors))


def frozen_entries(tensors: Sequence[SharedTensor]) -> NDArray[np.bool_]:
    """Whether an entry belongs to a parameter that is frozen [d]: all clients hold its first value for good."""
    return _entries(tensors, (tensor.parameter and not tensor.trained for tensor in tensors))


def check_frozen(change: Vector, tensors: Sequence[SharedTensor]) -> None:
    """RuntimeError for a client task whose change [d] is not 0 at frozen parameters."""
    if change[frozen_entries(tensors)].any():
        raise RuntimeError(
            "train has changed parameters that are frozen (requires_grad False), to which no wrapper lets anything "
            "happen; leave them as they are, or trainable, and say in train_epochs(trains=...) what is optimized"
        )


def without_frozen(change: Vector, tensors: Sequence[SharedTensor]) -> Vector:
    """The change [d] with 0 at frozen parameters, whatever noise or an attack has put there."""
    frozen = frozen_entries(tensors)
    return np.where(frozen, np.float32(0), change) if frozen.any() else change


def _entries(tensors: Sequence[SharedTensor], chosen: Iterable[bool]) -> NDArray[np.bool_]:
    return np.repeat(np.array([*chosen], np.bool_), [math.prod(tensor.shape) for tensor in tensors])
