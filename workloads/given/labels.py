"""Forms of labels that are given in Python: classes, numbers, and what is perhaps meant as the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError

Array = NDArray[Any]


def as_classes(labels: Array) -> str:
    """How to write labels that are whole numbers [N] or [N, 1], or one-hot [N, C], as classes [N].

    Empty for other labels, and for classes.
    """
    if is_one_hot(labels):
        return "y.argmax(1)"
    flat = ".ravel()" if labels.ndim == 2 and labels.shape[1] == 1 else ""
    whole = labels.dtype.kind in "iub"
    if (labels.ndim != 1 and not flat) or not (whole or (len(labels) and (labels == np.floor(labels)).all())):
        return ""
    found = f"y{flat}" + ("" if whole else ".astype(int)")
    return found if found != "y" else ""


def is_one_hot(labels: Array) -> bool:
    """Whether labels are [N, C], C > 1, and every sample has a single 1, and 0 in its other C - 1 places."""
    if labels.ndim != 2 or labels.shape[1] < 2 or not len(labels):
        return False
    ones = labels == 1
    return bool((ones | (labels == 0)).all() and (ones.sum(axis=1) == 1).all())


def check_one_hot(labels: Array, kind: str) -> None:
    """Check that labels [N, C] are not classes in another form, which ``kind`` would be learned from without a word.

    Raises:
        WorkloadError: they are one-hot.
    """
    if is_one_hot(labels):
        raise WorkloadError(
            f"y is one-hot, {labels.dtype} {labels.shape} with a single 1 for each sample; give y.argmax(1) to learn "
            f"{labels.shape[1]} classes, or say task={kind!r} if it is meant as it is"
        )
