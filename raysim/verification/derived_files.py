"""Files of a run that are made of its settings and tables: whether their values agree."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import columns
from raysim.driver.summary import OF_THE_DATA, of_rounds, of_settings
from raysim.storage.untrusted_files import UnreadableFileError, read_text
from raysim.units import counted
from raysim.verification.verdict import Difference, Verdict
from raysim.workloads.files.parquet_files import read_parquet

if TYPE_CHECKING:
    from pandas import DataFrame

SUMMARY = "summary.json"
BYTES = 2**26
"""Largest table of who has which data that is read."""
Rows = list[dict[str, str]]


def summary_differences(
    summary: Mapping[str, Any], settings: Mapping[str, Any], rounds: DataFrame, planned: int | None
) -> Iterator[Difference]:
    """Values of summary.json that settings and tables do not give, but for those that only the data could.

    Args:
        settings: the run's, by their names, from its proof.
        rounds: the table of rounds.
        planned: how many rounds the settings ask for; None where only a user's own code could say.
    """
    metrics = [name for name in summary if name in rounds and not columns.is_known(name)]
    expected = {**of_settings(settings, rounds, planned), **of_rounds(rounds, metrics)}
    for name, value in expected.items():
        if name != "seconds" and not agree(summary.get(name), value):
            yield Difference(SUMMARY, f"{summary.get(name)!r}, and {value!r} by settings and tables", item=name)
    unclear = {"planned_rounds"} if planned is None else set()
    for name in sorted(summary.keys() - expected.keys() - unclear - {"seconds", "proof", *OF_THE_DATA}):
        yield Difference(SUMMARY, "no run writes it there", item=name)


def data_differences(summary: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[Difference]:
    """The values of summary.json that only data and model give, beside those of a run that was computed again.

    Args:
        summary: empty of a run that has not ended.
        again: the summary of the new computation.
    """
    for name in OF_THE_DATA if summary and again else ():
        if summary.get(name) != again.get(name):
            text = f"{summary.get(name)!r}, and {again.get(name)!r} computed again"
            yield Difference(SUMMARY, text, item=name, rounding=False)


def compare_partitions(folder: Path, again: Path, verdict: Verdict) -> None:
    """Compare the tables of who has which data with those of a run that was computed again; adds to the verdict.

    Tables that one folder does not have are left out, as the split of more than a thousand clients, and columns that
    only one of two versions of raysim writes, which the verdict says.
    """
    for name in ("partition.csv", "split.csv"):
        try:
            mine, other = (_rows(place / name) for place in (folder, again))
        except FileNotFoundError:
            continue
        except (OSError, UnreadableFileError, csv.Error) as error:
            verdict.differences.append(Difference(name, f"it cannot be read: {error}", rounding=False))
            continue
        there, expected = ([*next(iter(rows), ())] for rows in (mine, other))
        both = [column for column in there if column in expected]
        if wrong := _first_wrong(name, mine, other, both):
            verdict.differences.append(wrong)
            continue
        if left := sorted({*there, *expected} - {*both}):
            verdict.notes.append(f"{name}: columns that only one of the two has are not compared ({', '.join(left)})")
        verdict.checked.append(name)


def _first_wrong(name: str, mine: Rows, other: Rows, both: Sequence[str]) -> Difference | None:
    """The first row of a table that differs from that of a new computation in the columns that both have."""
    if len(mine) != len(other) or (other and not both):
        rows = counted(len(mine), "row")
        text = f"it has {rows}, and {len(other)} computed again, or other columns"
        return Difference(name, text, rounding=False)
    for line, (one, two) in enumerate(zip(mine, other, strict=True), start=2):
        for column in both:
            if one[column] != two[column]:
                text = f"line {line}: {one[column]!r}, and {two[column]!r} computed again"
                return Difference(name, text, item=column, rounding=False)
    return None


def _rows(path: Path) -> Rows:
    return list(csv.DictReader(io.StringIO(read_text(path, BYTES, own=True), newline=""), restkey=""))


def agree(stored: object, value: object) -> bool:
    """Whether the summary's value is this one, but for the order in which a sum was made."""
    if isinstance(value, float):
        if math.isnan(value):
            return stored is None
        return isinstance(stored, int | float) and math.isclose(stored, value, rel_tol=1e-12)
    if isinstance(value, list):
        return isinstance(stored, list) and len(stored) == len(value) and all(map(agree, stored, value))
    if isinstance(value, dict):
        if not isinstance(stored, dict) or not stored.keys() <= value.keys():
            return False
        return all(agree(stored.get(name), each) for name, each in value.items())
    return stored == value


def same(path: Path, frame: DataFrame) -> bool:
    """Whether a Parquet file, of a folder without links, holds this table; one that unpacks to too much does not."""
    try:
        return bool(read_parquet(path, rows=len(frame)).to_pandas().equals(frame))
    except Exception:  # whatever a reader of a damaged file may raise
        return False
