"""Device profiles from a file: a CSV table, or a JSON list of objects, with a row for each client."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.config.timing import Devices
from raysim.devices.availability import Availability, from_windows
from raysim.errors import ConfigError

COLUMNS = ("seconds_per_sample", "bandwidth_down", "bandwidth_up", "latency", "drop_probability", "watts")
"""Numbers of a row, in the units of the options of the same name, which hold for what a file leaves out."""
AVAILABLE = ("available", "period")
"""Windows of virtual seconds, ``0-3600;7200-9000`` or a list of pairs; and after how many seconds they come again, the
same for all rows."""
FEDSCALE = {"computation": ("seconds_per_sample", 1e-3), "communication": ("bandwidth_down", 1e-3)}
"""FedScale's columns (milliseconds a sample, kbit/s both ways), and what they are here."""


def read(devices: Devices, clients: int) -> tuple[dict[str, NDArray[np.float64]], Availability | None]:
    """The columns of ``devices.trace`` [n] and the windows of availability, from the first rows of the file.

    Raises:
        ConfigError: the file is missing or no table, has too few rows, unknown columns, or values out of range; the
            text says which row.
    """
    path = Path(devices.trace)
    rows = [_renamed(row) for row in _rows(path)]
    if len(rows) < clients:
        raise ConfigError(f"devices.trace: {path} has {len(rows)} rows for {clients} clients. Give each client a row.")
    rows = rows[:clients]
    unknown = sorted({name for row in rows for name in row} - {*COLUMNS, *AVAILABLE, "client"})
    if unknown:
        raise ConfigError(
            f"devices.trace: {path} has the unknown column {unknown[0]!r}. Allowed: {', '.join(COLUMNS)}, "
            f"{', '.join(AVAILABLE)}, client, and FedScale's {', '.join(FEDSCALE)}."
        )
    table = {name: _column(path, rows, name, getattr(devices, name)) for name in COLUMNS}
    return table, _availability(path, rows)


def _rows(path: Path) -> list[dict[str, Any]]:
    import pandas

    try:
        if path.suffix.lower() == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
                raise ValueError("it is no list of objects")
            return found
        columns = pandas.read_csv(path, nrows=0).columns
        # Of a single column, an empty line is a row: a client without windows, say.
        records: Any = pandas.read_csv(path, skip_blank_lines=len(columns) > 1).to_dict("records")
        return [{str(name): value for name, value in row.items() if not pandas.isna(value)} for row in records]
    except OSError as error:
        raise ConfigError(
            f"devices.trace: {path} cannot be read: {error.strerror}. Give the path of a file."
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"devices.trace: {path} cannot be read as {'JSON' if path.suffix.lower() == '.json' else 'CSV'}: {error}"
        ) from error


def _renamed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of FedScale's as one of ours."""
    result = {name: value for name, value in row.items() if name not in FEDSCALE}
    for theirs, (ours, factor) in FEDSCALE.items():
        if isinstance(row.get(theirs), int | float):
            result[ours] = row[theirs] * factor
    if "communication" in row:
        result["bandwidth_up"] = result["bandwidth_down"]
    return result


def _column(path: Path, rows: Sequence[Mapping[str, Any]], name: str, default: float) -> Any:
    values = np.empty(len(rows))
    for number, row in enumerate(rows):
        value = row.get(name, default)
        with suppress(ValueError):  # one text among them makes all cells of a column texts
            value = float(value) if isinstance(value, str) else value
        zero_too = name in ("latency", "drop_probability", "watts")
        good = isinstance(value, int | float) and math.isfinite(value) and (value > 0 or (zero_too and value == 0))
        if not good or (name == "drop_probability" and value > 1):
            limit = "from 0 to 1" if name == "drop_probability" else "≥ 0" if zero_too else "> 0"
            raise ConfigError(
                f"devices.trace: {path}, row {number + 1}: {name} {value!r} is not allowed. Allowed: a number {limit}."
            )
        values[number] = value
    return values


def _availability(path: Path, rows: Sequence[Mapping[str, Any]]) -> Availability | None:
    if not any("available" in row for row in rows):
        return None
    try:
        periods = {float(row.get("period", math.inf)) for row in rows}
    except (TypeError, ValueError):
        periods = set()
    if len(periods) != 1 or not min(periods) > 0:
        raise ConfigError(f"devices.trace: {path}: period must be the same number > 0 in every row.")
    windows = []
    for number, row in enumerate(rows):
        try:
            windows.append(_windows(row.get("available", "")))
        except (ValueError, TypeError) as error:
            raise ConfigError(
                f"devices.trace: {path}, row {number + 1}: available {row.get('available')!r} is not allowed. Allowed: "
                "windows such as 0-3600;7200-9000, or a list of pairs of seconds."
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
