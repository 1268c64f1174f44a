"""Parquet files, read in parts: what a file takes in memory is counted, as its own words about that may be false."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from raysim.workloads.files.regular_files import allowed_bytes, open_regular, too_large

ROWS = 65_536
PART_BYTES = 2**26
"""Bytes that are read at a time, as far as rows are no larger."""


def read_parquet(path: Path, rows: int | None = None) -> Any:
    """All rows of a Parquet file as a ``pyarrow.Table``.

    Args:
        path: the file.
        rows: how many there must be; None: any number.

    Raises:
        OSError: it is not there or not a regular file.
        ValueError, pyarrow.ArrowException: it is damaged, takes more memory than a file of its size may, has two
            columns of one name, or another number of rows.
    """
    import pyarrow
    from pyarrow import parquet

    with open_regular(path) as source, open_regular(path) as again:
        limit = allowed_bytes(source.seek(0, 2))
        source.seek(0)
        file = parquet.ParquetFile(source)
        schema = file.schema_arrow
        if rows is not None and file.metadata.num_rows != rows:
            raise ValueError(f"it has {file.metadata.num_rows} rows, not {rows}")
        if repeated := [name for name in dict.fromkeys(schema.names) if schema.names.count(name) > 1]:
            raise ValueError(f"the column {repeated[0]!r} is there twice")
        columns = [file.schema.column(number) for number in range(len(file.schema))]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        short = parquet.ParquetFile(again, read_dictionary=texts)
        width = sum(max(1, int(column.length or 8)) for column in columns)

        def batches() -> Iterator[Any]:
            for group in range(file.num_row_groups):
                most = width + (_longest(short, group, texts) if texts else 0)
                yield from file.iter_batches(max(1, min(ROWS, PART_BYTES // most)), row_groups=[group])

        return pyarrow.Table.from_batches(within(batches(), limit), schema)


def with_plain_numbers(table: Any) -> Any:
    """A ``pyarrow.Table`` with decimal numbers as float64, which pandas would have as objects."""
    import pyarrow

    kinds = [pyarrow.float64() if pyarrow.types.is_decimal(field.type) else field.type for field in table.schema]
    fields = [field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)]
    return table.cast(pyarrow.schema(fields, table.schema.metadata))


def within(batches: Iterable[Any], limit: int) -> Iterator[Any]:
    """The same batches; ValueError once they take more than ``limit`` bytes together."""
    taken = 0
    for batch in batches:
        taken += batch.nbytes
        if taken > limit:
            raise too_large(limit)
        yield batch


def _longest(file: Any, group: int, texts: Sequence[str]) -> int:
    """Bytes of the longest texts that the rows of a group may have by number, summed over the columns.

    A text that is repeated stands in the file once, with its number in every row, and takes its room for each row only
    where it is written out. The first row, left in that form, comes with all texts that have a number.
    """
    batch = next(file.iter_batches(1, row_groups=[group], columns=list(texts)), None)
    return 0 if batch is None else sum(map(_longest_in, batch.columns))


def _longest_in(array: Any) -> int:
    import pyarrow
    from pyarrow import compute

    kind = array.type
    if pyarrow.types.is_dictionary(kind):
        return int(compute.max(compute.binary_length(array.dictionary)).as_py() or 0)
    if pyarrow.types.is_struct(kind):
        return sum(_longest_in(array.field(number)) for number in range(kind.num_fields))
    if pyarrow.types.is_map(kind):
        return _longest_in(array.keys) + _longest_in(array.items)
    return _longest_in(array.values) if pyarrow.types.is_list(kind) else 0
