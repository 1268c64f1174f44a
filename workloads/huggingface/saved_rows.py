"""Rows of a saved data set of Hugging Face: those of the training split, and those of the test split behind them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.parquet_files import with_plain_numbers
from raysim.workloads.files.table_files import listed
from raysim.workloads.huggingface.arrow_files import Columns, read_columns, splits_in

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class SavedRows:
    """The rows of the training split and of the test split behind them, if there is one."""

    path: Path
    columns: Columns
    tested: NDArray[np.bool_] | None
    others: tuple[str, ...] = ()
    """Further splits that could be the test."""
    test_split: str = ""

    def check_labels(self, target: pandas.Series[Any], *, chosen: bool) -> None:
        """Check that the test rows have labels, which competitions keep to themselves.

        Args:
            target: the label of each row.
            chosen: whether an option says which split is the test.

        Raises:
            WorkloadError: none of them has.
        """
        if self.tested is None or not target[self.tested].isna().all():
            return
        could = chosen and self.others
        advice = f"set test_split to {' or '.join(self.others)}" if could else "take this split out of the data set"
        raise WorkloadError(
            f"{self.path}: no row of the split {self.test_split!r} has a value of {target.name!r}, as where the labels "
            f"of a test are not published; {advice}"
        )

    def target(self, wanted: str, client_column: str) -> str:
        """The column to predict: ``wanted``, else the only one with named classes, else label, else the last."""
        if wanted:
            return wanted
        names: list[str] = self.columns.table.column_names
        classes = [name for name in self.columns.class_names if name != client_column]
        return classes[0] if len(classes) == 1 else "label" if "label" in names else names[-1]


def read_saved(path: Path, train_split: str = "train", test_split: str = "") -> SavedRows:
    """Read two splits of what ``save_to_disk`` wrote, or of Parquet or Arrow files.

    Args:
        path: the folder, or one file.
        train_split: name of the split to train on.
        test_split: name of the split of the test; empty: test, else validation, else none.

    Raises:
        WorkloadError: it cannot be read, or has no such split.
    """
    splits = splits_in(path)
    test = test_split or next((name for name in ("test", "validation") if name in splits), "")
    for option, name in (("train_split", train_split), ("test_split", test)):
        if name and name not in splits:
            raise WorkloadError(f"{path} has no split {name!r}, it has {listed(splits)}; set {option} to one of these")
    if test == train_split:
        raise WorkloadError(f"train_split and test_split are both {test!r}; a test with training data tells nothing")
    files = splits[train_split]
    columns = read_columns([*files, *(splits[test] if test else [])])
    train, count = sum(columns.rows[: len(files)]), sum(columns.rows)
    if not train or (test and count == train):
        empty = test if train else train_split
        raise WorkloadError(f"{path}: the split {empty!r} has no rows; choose another one, or save the data again")
    others = tuple(name for name in splits if name not in (train_split, test))
    return SavedRows(path, columns, np.arange(count) >= train if test else None, others, test)


def frame_of(path: Path, columns: Columns, names: list[str]) -> pandas.DataFrame:
    """Some columns as numbers and texts, with the names of classes in the place of their numbers."""
    from pyarrow import types

    for field in columns.table.select(names).schema:
        if types.is_nested(field.type) or types.is_binary(field.type) or types.is_large_binary(field.type):
            raise WorkloadError(
                f"{path}: the column {field.name!r} holds {field.type}, which is neither numbers nor text nor images; "
                f"leave it out with ignore={field.name}"
            )
    frame: pandas.DataFrame = with_plain_numbers(columns.table.select(names)).to_pandas(ignore_metadata=True)
    for name in columns.class_names:
        if name in names:
            frame[name] = _named(path, frame[name], columns.class_names[name])
    return frame


def _named(path: Path, codes: pandas.Series[Any], names: tuple[str, ...]) -> NDArray[np.object_]:
    """The class of each row, None where there is none (-1, as unpublished labels of tests are)."""
    missing = codes.isna() | (codes < 0)
    known = codes.mask(missing, 0).astype(np.int64).to_numpy()
    if len(known) and known.max() >= len(names):
        raise WorkloadError(
            f"{path}: the column {codes.name!r} has the class {known.max()} of {len(names)}; correct it"
        )
    found = np.array([*names, None], dtype=object)[np.where(missing, len(names), known)]
    return found
