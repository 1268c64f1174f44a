"""Device profiles from a file: a CSV table, or a JSON list of objects, with a row for each client."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.config.timing import Devices
from raysim.errors import ConfigError
from raysim.remote.address import typed_path
from raysim.virtual_time.devices.availability import Availability, from_windows
from raysim.workloads.files.regular_files import UNREADABLE, open_regular, open_unpacked

COLUMNS = ("seconds_per_sample", "bandwidth_down", "bandwidth_up", "latency", "drop_probability", "watts")
"""Numbers of a row, in the units of the options of the same name, which hold for what a file leaves out."""
AVAILABLE = ("available", "period")
"""Windows of virtual seconds, ``0-3600;7200-9000`` or a list of pairs; and after how many seconds they come again, the
same for all rows."""
FORWARD = 3.0
"""Forward passes that take as long as training on the same samples, which is a forward pass and twice that backward."""
FEDSCALE = {"computation": ("seconds_per_sample", FORWARD * 1e-3), "communication": ("bandwidth_down", 1e-3)}
"""FedScale's columns (milliseconds of a forward pass on a sample, kbit/s both ways), and what they are here; its own
code, too, takes three forward passes for training (``ClientMetadata.get_completion_time``)."""
LARGEST_JSON = 2**26
CHUNK = 10_000
"""Rows of a table that are read at a time."""

Rows = dict[int, dict[str, Any]]
"""The clients' rows in their order, by the number that each row has in the file, from 1."""


def digest(devices: Devices) -> str:
    """SHA-256 of the content of ``devices.trace``; empty where there is no such file."""
    path = typed_path(devices.trace)
    if not path.is_file():
        return ""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(devices: Devices, clients: int) -> tuple[dict[str, NDArray[np.float64]], Availability | None]:
    """The columns of ``devices.trace`` [n] and the windows of availability.

    The clients' rows are the first ones of the file or, if they have a column ``client``, those with the clients'
    numbers in it, wherever they are.

    Raises:
        ConfigError: the file is missing or no table, has too few rows, unknown columns, or values out of range; the
            text says which row.
    """
    path = typed_path(devices.trace)
    rows = {number: _renamed(path, number, row) for number, row in _rows(path, clients).items()}
    if len(rows) < clients:
        raise ConfigError(f"devices.trace: {path} has {len(rows)} rows for {clients} clients. Give each client a row.")
    unknown = sorted({name for row in rows.values() for name in row} - {*COLUMNS, *AVAILABLE, "client"})
    if unknown:
        raise ConfigError(
            f"devices.trace: {path} has the unknown column {unknown[0]!r}. Allowed: {', '.join(COLUMNS)}, "
            f"{', '.join(AVAILABLE)}, client, and FedScale's {', '.join(FEDSCALE)}."
        )
    table = {name: _column(path, rows, name, getattr(devices, name)) for name in COLUMNS}
    return table, _availability(path, rows)


def _rows(path: Path, clients: int) -> Rows:
    kind = "JSON" if path.suffix.lower() == ".json" else "CSV"
    try:
        with closing(_json_rows(path) if kind == "JSON" else _csv_rows(path, clients)) as rows:
            numbered = enumerate(rows, start=1)
            first = list(islice(numbered, clients))
            if any("client" in row for _, row in first):
                return _by_client(path, chain(first, numbered), clients)
            return dict(first)
    except RecursionError as error:
        raise ConfigError(f"devices.trace: {path} cannot be read as JSON: it is nested too deep") from error
    except UNREADABLE as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
        if isinstance(error, OSError) and error.errno:
            raise ConfigError(f"devices.trace: {path} cannot be read: {reason}. Give the path of a file.") from error
        raise ConfigError(f"devices.trace: {path} cannot be read as {kind}: {reason or 'it is damaged'}") from error


def _by_client(path: Path, rows: Iterable[tuple[int, dict[str, Any]]], clients: int) -> Rows:
    """Rows in the order of their column ``client``; those of further clients are left out."""
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    for number, row in rows:
        client = int(_number(path, number, "client", row.get("client")))
        if client in found:
            raise ConfigError(
                f"devices.trace: {path} has client {client} in the rows {found[client][0]} and {number}. Give each "
                "client one row."
            )
        if client < clients:
            found[client] = number, row
    missing = set(range(clients)) - found.keys()
    if missing:
        raise ConfigError(
            f"devices.trace: {path} has no row with client {min(missing)}. Give each of the clients 0 to {clients - 1} "
            "a row, or leave the column client out: then rows are in the order of the clients."
        )
    return dict(found[client] for client in range(clients))


def _json_rows(path: Path) -> Generator[dict[str, Any]]:
    with open_regular(path) as file:
        content = file.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise ValueError(f"it has more than {LARGEST_JSON / 1e6:g} MB; write it as CSV")
    found = json.loads(content.decode())
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ValueError("it is no list of objects")
    yield from found


def _csv_rows(path: Path, most: int) -> Generator[dict[str, Any]]:
    """Rows of a table: all that have a column ``client``, else the first."""
    import pandas

    with open_unpacked(path) as file:
        columns = pandas.read_csv(file, nrows=0).columns
    with open_unpacked(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        # Of a single column, an empty line is a row: a client without windows, say.
        options: Any = {"skip_blank_lines": len(columns) > 1, "nrows": None if "client" in columns else most}
        try:
            for chunk in pandas.read_csv(file, index_col=False, chunksize=CHUNK, **options):
                for row in chunk.to_dict("records"):
                    yield {str(name): value for name, value in row.items() if not pandas.isna(value)}
        except pandas.errors.ParserWarning as error:
            raise ValueError("a row has more cells than the first line") from error


def _renamed(path: Path, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of FedScale's as one of ours."""
    result = {name: value for name, value in row.items() if name not in FEDSCALE}
    for theirs, (ours, factor) in FEDSCALE.items():
        if theirs in row:
            result[ours] = _number(path, number, theirs, row[theirs]) * factor
    if "communication" in row:
        result["bandwidth_up"] = result["bandwidth_down"]
    return result


def _column(path: Path, rows: Rows, name: str, default: float) -> Any:
    return np.array([_number(path, number, name, row.get(name, default)) for number, row in rows.items()], np.float64)


def _number(path: Path, row: int, name: str, given: object) -> float:
    """The number in a cell; one text among them makes all cells of a column texts."""
    value = math.nan
    with suppress(ValueError, OverflowError):
        value = float(given) if isinstance(given, int | float | str) and not isinstance(given, bool) else value
    zero_too = name in ("latency", "drop_probability", "watts", "client")
    good = math.isfinite(value) and (value > 0 or (zero_too and value == 0))
    if not good or (name == "drop_probability" and value > 1) or (name == "client" and not value.is_integer()):
        limit = "from 0 to 1" if name == "drop_probability" else "≥ 0" if zero_too else "> 0"
        kind, more = "a number", ""
        if name == "client":
            kind, more = "a whole number", " Or leave the column out: then rows are in the order of the clients."
        raise ConfigError(
            f"devices.trace: {path}, row {row}: {name} {_shown(given)} is not allowed. Allowed: {kind} {limit}.{more}"
        )
    return value


def _shown(given: object) -> str:
    """A value of a cell in a message, cut to 60 characters."""
    try:
        text = ascii(given)
    except ValueError:  # an integer of more digits than Python writes
        return "of thousands of digits"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _availability(path: Path, rows: Rows) -> Availability | None:
    if not any("available" in row for row in rows.values()):
        return None
    try:
        periods = {float(row.get("period", math.inf)) for row in rows.values()}
    except (TypeError, ValueError, OverflowError):
        periods = set()
    if len(periods) != 1 or not min(periods) > 0:
        raise ConfigError(f"devices.trace: {path}: period must be the same number > 0 in every row.")
    windows = []
    for number, row in rows.items():
        try:
            windows.append(_windows(row.get("available", "")))
        except (ValueError, TypeError, OverflowError) as error:
            raise ConfigError(
                f"devices.trace: {path}, row {number}: available {_shown(row.get('available'))} is not allowed. "
                "Allowed: windows such as 0-3600;7200-9000, or a list of pairs of seconds."
            ) from error
    try:
        return from_windows(windows, periods.pop())
    except ValueError as error:
        raise ConfigError(
            f"devices.trace: {path}: {error}. Give each client's windows in order, without overlaps."
        ) from error


def _windows(text: str | Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    pairs = [part.split("-") for part in text.split(";") if part.strip()] if isinstance(text, str) else text
    return [(float(start), float(end)) for start, end in pairs]
