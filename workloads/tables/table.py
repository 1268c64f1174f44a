"""Tables in CSV or Parquet files as a workload: one column is to be predicted, another may name the client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.arrays.labeled_arrays import Part, federation_of
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.table_files import listed, need_columns, read_table
from raysim.workloads.objective import Objective
from raysim.workloads.option_types import Help, ShareBelowOne
from raysim.workloads.splits.partition import Integers, Partition
from raysim.workloads.splits.split_options import PARTITION_HELP, PartitionName, SplitOptions
from raysim.workloads.splits.virtual_clients import Views
from raysim.workloads.tables.encoding import Encoded, check_points, classes_of, encode, has_fractions, normalized
from raysim.workloads.tables.names import sites_of, with_printed_names

if TYPE_CHECKING:
    import pandas

BY_CLASS = ("dirichlet", "equal_dirichlet", "shards", "pathological", "pachinko", "views")
"""Partitions that go by the class of each sample."""


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


@dataclass(frozen=True)
class TableOptions(SplitOptions, ABC):
    """The split of a table over clients.

    Numeric columns are normalized and categorical ones numbered by the rows that clients train on, and by no others. It
    draws from the streams test, partition, local_test and validation.
    """

    name: ClassVar[str]
    inputs: ClassVar[Literal["array", "graph"]] = "array"
    defaults: ClassVar[Mapping[str, object]] = {"model.name": "mlp", "training.learning_rate": 0.1}

    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "auto"
    global_test_share: Annotated[
        ShareBelowOne, Help("share of the rows that is the global test set, where none is published; 0: none")
    ] = 0.2
    quantile_column: Annotated[str, Help("numeric column to sort by, for quantile; empty: the first")] = ""

    @abstractmethod
    def rows(self) -> Rows:
        """The table. WorkloadError if it cannot be had."""

    def sketch(self, stream: Stream) -> ArrayFederation:
        """The same as ``load``, as only the values tell which columns there are."""
        return self.load(stream)

    def load(self, stream: Stream) -> ArrayFederation:
        """Reads the table, splits and encodes it. WorkloadError if it cannot be had or cannot be split as asked."""
        return self.encoded(self.rows(), stream)

    def encoded(self, rows: Rows, stream: Stream) -> ArrayFederation:
        """The federation of a table's columns."""
        inputs = rows.table.drop(columns=rows.target)
        cut = self.cut(rows, stream, lambda trained: self._feature(inputs.iloc[trained], rows.name))
        encoded = encode(inputs, cut.inputs[training_rows(cut.train)], rows.categorical, rows.name)
        return replace(
            cut,
            inputs=encoded.values[cut.inputs],
            test_inputs=encoded.values[cut.test_inputs],
            categories=encoded.sizes,
            notes=(f"{cut.notes[0]}; {_found(encoded, inputs)}",),
        )

    def cut(self, rows: Rows, stream: Stream, feature: Callable[[Integers], NDArray[np.floating]]) -> ArrayFederation:
        """The federation of a table whose inputs are not encoded yet (:func:`cut_rows`)."""
        return cut_rows(self, self.global_test_share, rows, stream, feature)

    def _feature(self, inputs: pandas.DataFrame, origin: str) -> NDArray[np.float64]:
        numeric = inputs.select_dtypes("number")
        name = self.quantile_column or next(iter(numeric.columns), "")
        if name not in numeric.columns:
            raise WorkloadError(
                f"{origin}: partition=quantile sorts by a numeric column, and {name!r} is none; numeric are: "
                f"{listed(numeric.columns) or 'none'}. Set quantile_column"
            )
        values: NDArray[np.float64] = numeric[name].fillna(numeric[name].mean()).to_numpy(dtype=np.float64)
        return values


@dataclass(frozen=True)
class OwnTable(TableOptions, ABC):
    """Options of a table of one's own: what it has to be told about its columns."""

    target: Annotated[str, Help("column to predict; empty: the last")] = ""
    task: Annotated[
        Literal["auto", "classification", "regression"],
        Help("whether the target is a class or a number; auto: a number where some value of it has a fraction"),
    ] = "auto"
    client_column: Annotated[str, Help("column that names each row's client; empty: none")] = ""
    categorical: Annotated[tuple[str, ...], Help("columns of numbers that are categories")] = ()
    ignore: Annotated[tuple[str, ...], Help("columns to leave out")] = ()

    def rows_of(self, table: pandas.DataFrame, path: Path, tested: NDArray[np.bool_] | None, target: str) -> Rows:
        """The table without the columns that are no inputs. WorkloadError if target or client_column is not there."""
        client = (self.client_column,) if self.client_column else ()
        need_columns(path, table, (target, *client))
        sites = sites_of(table, self.client_column, path)
        table = table.drop(columns=[name for name in (*client, *self.ignore) if name in table.columns])
        if target not in table.columns:
            raise WorkloadError(f"{path}: the target {target!r} is also the client_column or in ignore")
        if self.task != "classification":
            check_points(table[target], str(path), "set task to classification")
        return Rows(path.stem, table, target, tested, sites, self.categorical, self.is_regression(table[target]))

    def is_regression(self, target: pandas.Series[Any]) -> bool:
        """Whether the target is a number rather than a class."""
        return self.task == "regression" or (self.task == "auto" and has_fractions(target))


@dataclass(frozen=True)
class Table(OwnTable):
    """A table of one's own in a CSV or Parquet file.

    Which columns are numeric and which categorical is found by their values and shown when the run begins. With
    ``client_column``, every value of it is a client.
    """

    name: ClassVar[str] = "table"

    path: Annotated[str, Help("the table: a CSV or Parquet file")] = ""
    test_path: Annotated[str, Help("a table of the global test set; empty: global_test_share is drawn")] = ""
    columns: Annotated[tuple[str, ...], Help("names of all columns, of a CSV file without a header")] = ()

    def rows(self) -> Rows:
        import pandas

        if not self.path:
            raise WorkloadError("workload table needs the option path: a CSV or Parquet file")
        path = Path(self.path).expanduser()
        table = read_table(path, self.columns)
        need_columns(path, table, (*self.categorical, *self.ignore))
        target = self.target or str(table.columns[-1])
        tested, parts = None, [(path, table)]
        if self.test_path:
            test_path = Path(self.test_path).expanduser()
            if test_path.resolve() == path.resolve():
                raise WorkloadError(f"path and test_path are both {path}; a test with training data tells nothing")
            test = read_table(test_path, self.columns)
            need_columns(test_path, test, [name for name in table.columns if name not in self.ignore])
            _check_alike(table, test, test_path, {*self.ignore, *self.categorical, self.client_column})
            tested = np.arange(len(table) + len(test)) >= len(table)
            parts.append((test_path, test))
            table = pandas.concat([table, test.reindex(columns=table.columns)], ignore_index=True)
        named = [self.client_column] if self.client_column else []
        named += [name for name in self.categorical if name != target]
        if target in table.columns and not self.is_regression(table[target]):
            named.append(target)
        return self.rows_of(with_printed_names(table, parts, self.columns, named), path, tested, target)


def _check_alike(table: pandas.DataFrame, test: pandas.DataFrame, path: Path, ignored: Collection[str]) -> None:
    """WorkloadError for a column that holds numbers alone, and in the test table something else.

    Args:
        ignored: columns that may hold anything: those that are left out, categories and clients.
    """
    import pandas
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    for name in table.columns:
        column = table[name]
        if name in ignored or not is_numeric_dtype(column) or is_bool_dtype(column) or not column.notna().any():
            continue
        wrong = pandas.to_numeric(test[name], errors="coerce").isna() & test[name].notna()
        if wrong.any():
            row = int(np.flatnonzero(wrong.to_numpy())[0])
            raise WorkloadError(
                f"{path}: the column {name!r} holds {test[name].iloc[row]!r} in row {row + 1}, and the training rows "
                "hold numbers; correct it, or leave the row out"
            )


def cut_rows(
    options: SplitOptions,
    global_test_share: float,
    rows: Rows,
    stream: Stream,
    feature: Callable[[Integers], NDArray[np.floating]],
) -> ArrayFederation:
    """The federation of rows whose inputs are not encoded yet: in their place are the positions of the rows.

    Args:
        options: the split over clients.
        global_test_share: share of the rows that is drawn for the global test, where none is published.
        rows: the table.
        stream: gives the random numbers, test and those of the split.
        feature: by which ``partition=quantile`` sorts, of the training rows at these positions.
    """
    target, count = rows.table[rows.target], len(rows.table)
    tested = _test_rows(count, global_test_share, stream) if rows.tested is None else rows.tested
    trained, test_rows = np.flatnonzero(~tested), np.flatnonzero(tested)
    class_names, labels = ((), np.zeros(count, np.int64)) if rows.regression else classes_of(target, rows.name)
    whole = Part(np.arange(count), labels, rows.sites)
    cut = federation_of(
        _options_for(options, rows),
        stream,
        rows.name,
        whole.at(trained),
        whole.at(test_rows),
        class_names,
        notes=(f"{rows.name}: target {rows.target} ({len(class_names)} classes: {listed(class_names, 5)})",),
        feature=lambda: feature(trained),
        sites_from="a column that names the client of every row (client_column)",
    )
    untested = _untested(cut) if rows.sites is not None and len(test_rows) else ""
    if not rows.regression:
        return replace(cut, notes=(f"{cut.notes[0]}{untested}",))
    numbers, note = normalized(target, trained[training_rows(cut.train)], rows.name)
    return replace(
        cut,
        labels=numbers[trained],
        test_labels=numbers[test_rows],
        objective=Objective("regression"),
        outputs=1,
        notes=(f"{rows.name}: {note}{untested}",),
    )


def _untested(federation: ArrayFederation) -> str:
    """A note on clients of which the global test has no row."""
    count = sum(not federation.test_samples(client) for client in range(federation.clients))
    return f"; {count} of {federation.clients} clients have no row in the global test, and no local test" * bool(count)


def _options_for(options: SplitOptions, rows: Rows) -> SplitOptions:
    """Options of the split: one that goes by classes needs these."""
    if not rows.regression:
        return options
    if options.partition == "auto" and rows.sites is None:
        return replace(options, partition="iid")
    if options.partition in BY_CLASS:
        raise WorkloadError(
            f"{rows.name}: partition={options.partition} goes by classes, and the target {rows.target} is a number; "
            "choose iid, quantile, quantity, lognormal or sites"
        )
    return options


def _test_rows(count: int, share: float, stream: Stream) -> NDArray[np.bool_]:
    tested = np.zeros(count, dtype=np.bool_)
    tested[stream("test").permutation(count)[: round(share * count)]] = True
    return tested


def training_rows(train: Partition | Views) -> Integers:
    """The samples that some client trains on."""
    return np.unique(train.pooled().indices)


def _found(encoded: Encoded, inputs: pandas.DataFrame) -> str:
    """Findings in the inputs of a table, for the user to check."""
    sizes = [f"{name} ({size - 1})" for name, size in zip(encoded.categorical, encoded.sizes, strict=True)]
    missing = int(inputs.isna().any(axis=1).sum())
    return (
        f"numeric columns: {listed(encoded.numeric) or 'none'}; categorical columns and their numbers of values: "
        f"{listed(sizes) or 'none'}; {missing} of {len(inputs)} rows miss a value"
    )
