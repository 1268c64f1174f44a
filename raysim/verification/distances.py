"""Distances by round between a run and its new computation, where rounding differs: another processor, say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from raysim import columns
from raysim.exchange.task_digests import MESSAGE, STATE, UPDATE
from raysim.storage.origin import kept_checkpoints
from raysim.storage.pytree import Array
from raysim.storage.state_files import read_pair
from raysim.units import scale
from raysim.verification.differences import units
from raysim.verification.folder_check import TABLES, FolderCheck, Texts
from raysim.verification.verdict import RoundDistance, StateDistance

_NO_NUMBERS = (MESSAGE, UPDATE, STATE)
"""Columns of digests, of which another bit is all that can be said."""


def round_distances(check: FolderCheck, folder: Path, rounds: Iterable[int]) -> Iterator[RoundDistance]:
    """How far these rounds are from those computed again.

    Args:
        check: the run's folder, of which all was checked.
        folder: where the rounds were computed again.
    """
    other = FolderCheck(folder)
    other.read()
    tables = [(name, check.rows(name), other.rows(name)) for name in TABLES]
    kept = [kept_checkpoints(path) for path in (check.path, folder)]
    for round in rounds:
        old, new = check.rounds.get(round), other.rounds.get(round)
        if old is None or new is None:
            yield RoundDistance(round, 0, 0, ("one of the two has no such round",), same_server=False, server=None)
            continue
        cells: list[bool] = []
        off: list[str] = []
        for name, before, now in tables:
            _compare(f"{name}.csv", (before.get(str(round), []), now.get(str(round), [])), cells, off)
        same = old.content["server"] == new.content["server"]
        paths = [each[round] for each in kept if round in each]
        apart = None if same or len(paths) < 2 else state_distance(*(read_pair(path, "server")[1] for path in paths))
        yield RoundDistance(round, len(cells), sum(cells), tuple(off), same, apart)


def _compare(file: str, rows: tuple[list[Texts], list[Texts]], cells: list[bool], off: list[str]) -> None:
    """Compare a round's rows of one table: adds whether each cell is equal, and sentences on those that are off."""
    before, now = rows
    if [row.get("client") for row in before] != [row.get("client") for row in now]:
        off.append(f"{file}: other clients take part")
        return
    for was, row in zip(before, now, strict=True):
        place = f"{file}, client {row['client']}" if "client" in row else file
        for column in dict.fromkeys([*was, *row]):
            if columns.is_timing(column) or column in _NO_NUMBERS:
                continue
            first, second = was.get(column, ""), row.get(column, "")
            cells.append(first == second)
            if not agree(column, first, second):
                off.append(f"{place}: {column} {first or 'nothing'}, and {second or 'nothing'} computed again")


def agree(column: str, first: str, second: str) -> bool:
    """Whether two cells are the same number to the digits that a table of a study prints of this column.

    That is: they are printed alike, or half a unit of the last printed digit apart at most, as the two may lie on both
    sides of a value where rounding turns.
    """
    if first == second:
        return True
    try:
        a, b = float(first), float(second)
    except ValueError:
        return False
    unit = columns.column_of(column).unit
    if unit == "text" or not (math.isfinite(a) and math.isfinite(b)):
        return False
    if a == b:
        return True
    form = scale(unit, (a, b))
    digits = int(form.form[1:-1])
    largest = max(abs(a), abs(b)) * form.factor
    last = -digits if form.form.endswith("f") else math.floor(math.log10(largest)) - digits + 1
    return form.text([a]) == form.text([b]) or abs(a - b) * form.factor <= 0.5 * 10.0**last


def state_distance(old: Mapping[str, Array], new: Mapping[str, Array]) -> StateDistance | None:
    """The distance of two states' floats; None where their tensors have other names, shapes or types."""
    names = [name for name, array in old.items() if array.dtype.kind == "f"]
    if any((old[name].shape, old[name].dtype) != (new[name].shape, new[name].dtype) for name in old if name in new):
        return None
    if old.keys() != new.keys() or not names:
        return None
    apart = np.concatenate([units(old[name], new[name]).reshape(-1) for name in names])
    before, now = (np.concatenate([each[name].reshape(-1).astype(np.float64) for name in names]) for each in (old, new))
    norm = float(np.linalg.norm(before))
    relative = float(np.linalg.norm(now - before)) / norm if norm else math.nan
    differing = int((apart > 0).sum())
    return StateDistance(len(apart), differing, int(apart.max(initial=0)), float(np.median(apart)), relative)
