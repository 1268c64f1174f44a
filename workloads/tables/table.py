"""Tables in CSV or Parquet files as a workload: one column is the class, another may name the client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from workloads.array_federation import ArrayFederation
from workloads.errors import WorkloadError
from workloads.federated_data import Stream
from workloads.option_types import Help, ShareBelowOne
from workloads.partition import Partition
from workloads.split_options import PARTITION_HELP, Labeled, PartitionName, Split, SplitOptions
from workloads.table_files import listed, need_columns, read_table
from workloads.tables.encoding import Encoding, classes_of, fit

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
    """

    name: str
    table: pandas.DataFrame
    target: str
    tested: NDArray[np.bool_] | None = None
    sites: NDArray[np.str_] | None = None
    categorical: tuple[str, ...] = ()


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
        rows = self.rows()
        class_names, labels = classes_of(rows.table[rows.target], rows.name)
        inputs = rows.table.drop(columns=rows.target)
        tested = self._test_rows(len(labels), stream) if rows.tested is None else rows.tested
        trained, test_rows = np.flatnonzero(~tested), np.flatnonzero(tested)
        sites = rows.sites
        labeled = Labeled(
            labels[trained],
            len(test_rows),
            None if sites is None else sites[trained],
            None if sites is None or not len(test_rows) else sites[test_rows],
            feature=lambda: self._feature(inputs.iloc[trained], rows.name),
            sites_from="a column that names the client of every row (client_column)",
        )
        try:
            split = self.split(labeled, stream)
        except WorkloadError as error:
            raise WorkloadError(f"{rows.name}: {error}") from error
        encoding = fit(inputs, trained[_training(split)], rows.categorical, rows.name)
        encoded = encoding.encode(inputs)
        return ArrayFederation(
            name=rows.name,
            inputs=encoded[trained],
            labels=labels[trained],
            test_inputs=encoded[test_rows],
            test_labels=labels[test_rows],
            **vars(split),
            class_names=class_names,
            categories=encoding.sizes,
            notes=(_found(rows, class_names, encoding, inputs),),
        )

    def _test_rows(self, count: int, stream: Stream) -> NDArray[np.bool_]:
        tested = np.zeros(count, dtype=np.bool_)
        tested[stream("test").permutation(count)[: round(self.global_test_share * count)]] = True
        return tested

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
class Table(TableOptions):
    """A table of one's own in a CSV or Parquet file.

    Which columns are numeric and which categorical is found by their values and shown when the run begins. With
    ``client_column``, every value of it is a client.
    """

    name: ClassVar[str] = "table"

    path: Annotated[str, Help("the table: a CSV or Parquet file")] = ""
    test_path: Annotated[str, Help("a table of the global test set; empty: global_test_share is drawn")] = ""
    target: Annotated[str, Help("column to predict, with a class in each row; empty: the last")] = ""
    client_column: Annotated[str, Help("column that names each row's client; empty: none")] = ""
    categorical: Annotated[tuple[str, ...], Help("columns of numbers that are categories")] = ()
    ignore: Annotated[tuple[str, ...], Help("columns to leave out")] = ()
    columns: Annotated[tuple[str, ...], Help("names of all columns, of a CSV file without a header")] = ()

    def rows(self) -> Rows:
        import pandas

        if not self.path:
            raise WorkloadError("workload table needs the option path: a CSV or Parquet file")
        path = Path(self.path).expanduser()
        table = read_table(path, self.columns)
        target = self.target or str(table.columns[-1])
        client = (self.client_column,) if self.client_column else ()
        need_columns(path, table, (target, *client, *self.categorical, *self.ignore))
        tested = None
        if self.test_path:
            test_path = Path(self.test_path).expanduser()
            test = read_table(test_path, self.columns)
            need_columns(test_path, test, [name for name in table.columns if name not in self.ignore])
            tested = np.arange(len(table) + len(test)) >= len(table)
            table = pandas.concat([table, test[table.columns]], ignore_index=True)
        sites = None
        if client:
            missing = np.flatnonzero(table[client[0]].isna().to_numpy())
            if len(missing):
                raise WorkloadError(f"{path}: the client_column {client[0]!r} is missing in row {missing[0] + 1}")
            sites = table[client[0]].to_numpy().astype(np.str_)
        table = table.drop(columns=[*client, *self.ignore])
        if target not in table.columns:
            raise WorkloadError(f"{path}: the target {target!r} is also the client_column or in ignore")
        return Rows(path.stem, table, target, tested, sites, self.categorical)


def _training(split: Split) -> NDArray[np.int64]:
    """The samples that some client trains on."""
    return np.unique(split.train.indices if isinstance(split.train, Partition) else split.train.pool)


def _found(rows: Rows, class_names: tuple[str, ...], encoding: Encoding, inputs: pandas.DataFrame) -> str:
    """What was found in the table, for the user to check."""
    sizes = [f"{name} ({size - 1})" for name, size in zip(encoding.categorical, encoding.sizes, strict=True)]
    missing = int(inputs.isna().any(axis=1).sum())
    return (
        f"{rows.name}: target {rows.target} ({len(class_names)} classes: {listed(class_names, 5)}); "
        f"numeric columns: {listed(encoding.numeric) or 'none'}; categorical columns and their numbers of values: "
        f"{listed(sizes) or 'none'}; {missing} of {len(inputs)} rows miss a value"
    )
