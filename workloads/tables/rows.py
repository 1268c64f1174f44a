"""A table before its columns are encoded, and its rows as they are split over clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.objective import CLASSIFICATION, Objective
from workloads.partition import Integers
from workloads.split_options import Split

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Rows:
    """A table before it is split.

    Args:
        name: of the data.
        table: input columns and the target.
        target: name of its column.
        tested: rows of a published test set, bool [N]; None if one is to be drawn.
        sites: real client of each row, None if there are none.
        categorical: columns of numbers that are categories.
        regression: whether the target is a number rather than a class.
    """

    name: str
    table: pandas.DataFrame
    target: str
    tested: NDArray[np.bool_] | None = None
    sites: NDArray[np.str_] | None = None
    categorical: tuple[str, ...] = ()
    regression: bool = False


@dataclass(frozen=True, eq=False)
class Cut:
    """The split of a table's rows over clients, and their target.

    Args:
        name: of the data.
        split: what each client has, by positions in ``trained`` and ``tested``.
        trained: rows that are not in the global test set.
        tested: rows of the global test set.
        training: rows that some client trains on.
        labels: of all rows, as models are to give them: int64 [N], of numbers float32 [N].
        class_names: what people call the classes; none of numbers.
        note: what was found of the target, for the user to check.
    """

    name: str
    split: Split
    trained: Integers
    tested: Integers
    training: Integers
    labels: NDArray[Any]
    class_names: tuple[str, ...]
    note: str

    def described(self, found: str) -> dict[str, Any]:
        """All of an ``ArrayFederation`` but its inputs.

        Args:
            found: what was found of these, for the user to check.
        """
        return {
            "name": self.name,
            "labels": self.labels[self.trained],
            "test_labels": self.labels[self.tested],
            **vars(self.split),
            "class_names": self.class_names,
            "objective": CLASSIFICATION if self.class_names else Objective("regression"),
            "outputs": 0 if self.class_names else 1,
            "notes": (f"{self.name}: {self.note}; {found}",),
        }
