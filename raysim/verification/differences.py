"""Where a new computation first differs from a run, by how much, and what of the machine may explain it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysim.columns import is_timing
from raysim.config.run_config import RunConfig
from raysim.errors import ResultsError
from raysim.portable import VARIABLES
from raysim.running.own_sources import changes_since
from raysim.storage.checkpoint_digests import read_digests
from raysim.storage.environment import environment
from raysim.storage.origin import kept_checkpoints
from raysim.storage.pytree import Array
from raysim.storage.run_record import read_environment
from raysim.storage.state_files import read_pair
from raysim.verification.folder_check import TABLES, FolderCheck, Texts
from raysim.verification.verdict import Difference


def first_difference(check: FolderCheck, folder: Path, rounds: Iterable[int]) -> list[Difference]:
    """The differences of the first of these rounds that has any, and those of the states in its checkpoints.

    Args:
        check: the run's folder, of which all was checked.
        folder: where the rounds were computed again.
    """
    other = FolderCheck(folder)
    other.read()
    tables = {name: (check.rows(name), other.rows(name)) for name in reversed(TABLES)}  # clients, then their round
    for number in rounds:
        before, now = check.rounds.get(number), other.rounds.get(number)
        if before is None or now is None:
            which = "the new computation ended before it" if now is None else "the run has no such round"
            return [Difference("rounds", which, round=number)]
        found = [
            difference
            for name, (old, new) in tables.items()
            if before.content[name] != now.content[name]
            for difference in _rows(name, number, old.get(str(number), []), new.get(str(number), []))
        ]
        if before.content["server"] != now.content["server"]:
            states = [*_states(check.path, folder)]
            found += states or [Difference("server", "its state is another one (SHA-256)", round=number)]
        if not found and before.content.get("selection") != now.content.get("selection"):
            found = [Difference("selection", "the sampler's memory is another one (SHA-256)", round=number)]
        if found:
            return found
    return [*_client_states(check, folder), *_ends(check.end, other.end)]


def explanations(folder: Path, config: RunConfig | None = None) -> list[str]:
    """Differences between the machine that a run was made on, by its environment.json, and this one.

    Args:
        config: the run's settings, for the source of methods, workloads and models of one's own; None: it is not read.
    """
    try:
        before = read_environment(folder)
    except ResultsError:
        return ["machine, perhaps: environment.json cannot be read"]
    now = environment()
    pairs = [(name, before.get(name), now[name]) for name in ("python", "platform", "cpu", "commit", "dirty")]
    old: Mapping[str, Any] = before.get("versions", {})
    pairs += [(name, old.get(name), version) for name, version in now["versions"].items()]
    if (caps := before.get("caps")) is not None:  # runs of earlier versions did not record them
        pairs += [(name, caps.get(name), now["caps"].get(name)) for name in VARIABLES]
    machine = [f"{name}: {new or 'not set'}, in the run {was or 'not set'}" for name, was, new in pairs if was != new]
    return [*(changes_since(config, folder) if config is not None else ()), *machine]


def _ends(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Iterator[Difference]:
    """The differences of two runs' last lines, where both have ended."""
    for what, name in (("the clients' states", "states"), ("the model", "model")):
        if before is not None and now is not None and before.get(name) != now.get(name):
            yield Difference(what, "another one at the run's end (SHA-256)")


def _client_states(check: FolderCheck, folder: Path) -> Iterator[Difference]:
    """The clients whose states differ in checkpoints that both folders have."""
    paths = kept_checkpoints(folder)
    for number in sorted(check.clients.keys() & paths.keys()):
        old, new = check.clients[number], read_digests(paths[number]).clients
        for client in sorted(old.keys() | new.keys()):
            if old.get(client) != new.get(client):
                yield Difference(f"checkpoints/round-{number:06d}", "another state (SHA-256)", number, client)


def _rows(name: str, number: int, before: list[Texts], now: list[Texts]) -> Iterator[Difference]:
    """The cells in which a round's rows of a table differ."""
    file = f"{name}.csv"
    clients = ([row.get("client", "") for row in rows] for rows in (before, now))
    old, new = clients
    if old != new:
        only = sorted({*old} ^ {*new}) or old
        yield Difference(file, f"other clients take part ({', '.join(only[:5])})", round=number)
        return
    for was, row in zip(before, now, strict=True):
        client = int(row["client"]) if row.get("client", "").isdecimal() else None
        yield from cell_differences(file, number, client, was, row)


def cell_differences(file: str, number: int, client: int | None, before: Texts, now: Texts) -> Iterator[Difference]:
    """The cells in which two rows of a table differ, but for times."""
    for column in dict.fromkeys([*before, *now]):
        first, second = before.get(column, ""), now.get(column, "")
        if first != second and not is_timing(column):
            text = f"{first or 'nothing'}, and {second or 'nothing'} computed again{_apart(first, second)}"
            yield Difference(file, text, number, client, column)


def _apart(first: str, second: str) -> str:
    """How far two numbers are apart, in units in the last place of float64; empty for texts."""
    with suppress(ValueError):
        a, b = float(first), float(second)
        if math.isfinite(a) and math.isfinite(b):
            return f" ({_largest(np.array([a]), np.array([b])):,} units in the last place)"
    return ""


def units(first: Array, second: Array) -> NDArray[np.uint64]:
    """The distance of each two values of two arrays of floats of one type, in units in the last place, uint64 [N].

    That is the number of floats between the two, plus one; both zeros are the same.
    """
    a, b = _ordered(first), _ordered(second)
    return np.asarray(np.maximum(a, b) - np.minimum(a, b), np.uint64)


def _largest(first: Array, second: Array) -> int:
    return int(units(first, second).max(initial=0))


def _ordered(values: Array) -> NDArray[np.uint64]:
    """Whole numbers that follow one another as the floats do; both zeros are 2^63."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).reshape(-1).view(f"<i{size}").astype(np.int64)
    zero, magnitude = np.uint64(1 << 63), (bits & ((1 << (8 * size - 1)) - 1)).astype(np.uint64)
    return np.where(bits < 0, zero - magnitude, zero + magnitude)


def _states(before: Path, now: Path) -> Iterator[Difference]:
    """The tensors in which the server's states differ, in the first checkpoint that both folders have."""
    kept = [kept_checkpoints(folder) for folder in (before, now)]
    for number in sorted(kept[0].keys() & kept[1].keys()):
        (_, old), (_, new) = (read_pair(paths[number], "server") for paths in kept)
        found = [name for name in old if name not in new or old[name].tobytes() != new[name].tobytes()]
        if found:
            yield from (Difference("server", _distance(old[name], new.get(name)), number, None, name) for name in found)
            return


def _distance(old: Array, new: Array | None) -> str:
    if new is None or old.shape != new.shape or old.dtype != new.dtype:
        return "another shape or type"
    differing = int((old != new).sum())
    if old.dtype.kind != "f":
        return f"{differing:,} of {old.size:,} values differ"
    return f"{differing:,} of {old.size:,} values differ, by up to {_largest(old, new):,} units in the last place"
