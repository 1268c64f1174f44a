"""Files of Hugging Face's library ``datasets``: Arrow files of ``save_to_disk``, and Parquet files.

The library itself is not needed: pyarrow reads both, and the features (names of classes, columns of images) are JSON in
the schema of every file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.parquet_files import read_parquet, within
from raysim.workloads.files.regular_files import allowed_bytes, read_regular
from raysim.workloads.files.table_files import listed

SUFFIXES = (".arrow", ".parquet")
SPLITS: Mapping[str, str] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
"""Words in the paths of files that name their split, as the Hub understands them."""
PARTIAL = "partial-"
"""Beginning of a split's folder on the Hub that has the first part of the split alone, as of sets above 5 GB."""
GET_THE_WHOLE = (
    "save the whole set into a folder (save_to_disk of the library datasets, or its own Parquet files) and name it "
    "with path"
)
LARGEST_JSON = 10**8
"""Bytes."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The rows of one split or of several: a ``pyarrow.Table``, and what its features say."""

    table: Any
    class_names: Mapping[str, tuple[str, ...]]
    """Column of class numbers to the names of the classes."""
    images: tuple[str, ...]
    """Columns of encoded images."""
    rows: tuple[int, ...]
    """The number of rows of each file."""


def splits_in(path: Path) -> dict[str, list[Path]]:
    """Split to its files, of a folder that ``save_to_disk`` wrote, of a folder of Parquet or Arrow files, or of a file.

    WorkloadError if there are none, if it is not clear to what split a file belongs, or if it is the Hub's first part
    of one.
    """
    if path.is_file() and path.suffix in SUFFIXES:
        return {"train": [path]}
    if not path.is_dir():
        raise WorkloadError(f"no folder {path}; give a folder that save_to_disk wrote, or of Parquet files")
    if (path / "dataset_dict.json").is_file():
        names = _json(path / "dataset_dict.json").get("splits")
        if not isinstance(names, list) or not names or not all(_plain(name) for name in names):
            raise _damaged(path / "dataset_dict.json", "it names no splits")
        return {name: _saved(path / name) for name in names}
    if (path / "state.json").is_file():
        return {"train": _saved(path)}
    files = sorted(found for suffix in SUFFIXES for found in path.rglob(f"*{suffix}"))
    if not files:
        raise WorkloadError(f"{path} has no .parquet or .arrow files, and save_to_disk did not write it")
    for folder in dict.fromkeys(file.relative_to(path).parent for file in files):
        if any(name.startswith(PARTIAL) for name in folder.parts):
            raise WorkloadError(
                f"{path}: {folder} holds the first part of a split alone, as the Hub converts sets above 5 GB; "
                f"{GET_THE_WHOLE}, or rename it without {PARTIAL!r} to use that part"
            )
    found: dict[str, list[Path]] = {}
    for file in files:
        words = re.split(r"[^a-z]+", file.relative_to(path).as_posix().lower())
        found.setdefault(next((SPLITS[word] for word in reversed(words) if word in SPLITS), ""), []).append(file)
    if "" in found and len(found) > 1:
        raise WorkloadError(
            f"{path}: {found[''][0].relative_to(path)} names no split (train, validation or test), and other files do; "
            "take it out, or name it like them"
        )
    return found if "" not in found else {"train": files}


def read_columns(files: list[Path]) -> Columns:
    """All rows of these files, which must have the same columns. WorkloadError if one cannot be read."""
    import pyarrow

    tables = [_read(file) for file in files]
    for file, table in zip(files[1:], tables[1:], strict=True):
        if table.schema.names != tables[0].schema.names or table.schema.types != tables[0].schema.types:
            raise WorkloadError(
                f"{file} has the columns {_shown(table)}, and {files[0]} has {_shown(tables[0])}; they must agree"
            )
    table = pyarrow.concat_tables([table.replace_schema_metadata(None) for table in tables])
    try:
        features = _features(tables[0].schema)
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(files[0], f"its features cannot be read: {error}") from error
    names = {
        column: tuple(map(str, kind["names"]))
        for column, kind in features.items()
        if column in table.column_names and kind.get("_type") == "ClassLabel" and isinstance(kind.get("names"), list)
    }
    images = [column for column, kind in features.items() if kind.get("_type") == "Image"]
    images += [field.name for field in table.schema if field.name not in features and _encoded(field.type)]
    images = [column for column in images if column in table.column_names]
    return Columns(table, names, tuple(images), tuple(map(len, tables)))


def _saved(folder: Path) -> list[Path]:
    """The files of one split that ``save_to_disk`` wrote, in the order of the rows."""
    state = folder / "state.json"
    entries = _json(state)
    if entries.get("_indices_files") or entries.get("_indices_data_files"):
        raise WorkloadError(f"{folder} picks its rows by a file of indices; save it again after flatten_indices()")
    files = entries.get("_data_files")
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in files or []]
    if not names or not all(_plain(name) for name in names):
        raise _damaged(state, "it names no files of rows")
    return [folder / str(name) for name in names]


def _plain(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"\w[\w.@ -]*", name) is not None


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise WorkloadError(f"there is no {path}, which save_to_disk writes; save the data set again")
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError(f"it has more than {LARGEST_JSON / 1e6:g} MB")
        found = json.loads(read_regular(path).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(found, dict):
        raise _damaged(path, "it is no JSON object")
    return found


def _read(file: Path) -> Any:
    import pyarrow
    from pyarrow import ipc

    if not file.is_file():
        raise WorkloadError(f"there is no file {file}, though its folder names it; save the data set again")
    try:
        if file.suffix == ".parquet":
            table = read_parquet(file)
        else:
            with pyarrow.memory_map(str(file)) as source:
                batches, left = ipc.open_stream(source), allowed_bytes(file.stat().st_size)
                table = pyarrow.Table.from_batches(within(batches, left), batches.schema)
        table.validate(full=True)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise _damaged(file, " ".join(str(error).split())) from error
    return table


def _damaged(file: Path, reason: str) -> WorkloadError:
    return WorkloadError(f"{file} cannot be read ({reason}); copy it again, or save the data set again")


def _features(schema: Any) -> dict[str, dict[str, Any]]:
    """Column to its feature, of those that the schema tells of."""
    written = (schema.metadata or {}).get(b"huggingface")
    if written is None:
        return {}
    found = json.loads(written)
    for part in ("info", "features"):
        found = found.get(part) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise ValueError("they are no JSON object")
    return {name: kind for name, kind in found.items() if isinstance(kind, dict)}


def _encoded(kind: Any) -> bool:
    """Whether a column without a feature holds images as ``datasets`` has them."""
    import pyarrow

    return pyarrow.types.is_struct(kind) and {entry.name for entry in kind} == {"bytes", "path"}


def _shown(table: Any) -> str:
    return listed(f"{field.name} ({field.type})" for field in table.schema)
