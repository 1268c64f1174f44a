"""The lines of a proof as they must be, and checks that go on whatever a foreign folder holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from raysim.storage.proof_file import Entry
from raysim.storage.untrusted_files import UnreadableFileError, check_types
from raysim.verification.verdict import Difference

_NO_RUN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""Errors where something has another type or is missing. Errors of raysim's own are told by who calls."""
_FIRST = {"settings": dict, "of": str, "origin": dict}
_ROUND = {"round": int, "rounds": str, "clients": str, "server": str, "selection": str}
_END = {"end": int, "states": str, "model": str}
_NEEDED = ("settings", "of", "round", "rounds", "clients", "server", "end", "states")


def is_chain(entries: Sequence[Entry]) -> bool:
    """Whether the lines are settings, rounds 1, 2, 3 … and, of a run that has ended, an end, each with its digests."""
    contents = [entry.content for entry in entries]
    if len(contents) < 2:
        return False
    end = [contents[-1]] if "end" in contents[-1] else []
    rounds = contents[1 : len(contents) - len(end)]
    whole = (
        _has(contents[0], _FIRST) and all(_has(one, _ROUND) for one in rounds) and all(_has(one, _END) for one in end)
    )
    if not whole or type(contents[0]["settings"].get("seed")) is not int:
        return False
    numbered = [content["round"] for content in rounds] == [*range(1, len(rounds) + 1)]
    return numbered and bool(rounds) and (not end or end[0]["end"] == len(rounds))


def _has(content: Mapping[str, Any], types: Mapping[str, type]) -> bool:
    """Whether a line has all that it must, and of these types."""
    try:
        check_types(content, types)
    except UnreadableFileError:
        return False
    return all(name in content for name in types if name in _NEEDED)


def told(where: str, check: Callable[[], Iterator[Difference]]) -> Iterator[Difference]:
    """All that a check finds; where it meets what no run writes, that is a difference too, and the end of the check.

    Args:
        where: the file that it looks at.
    """
    try:
        yield from check()
    except _NO_RUN as error:
        yield Difference(where, f"it holds what no run writes ({type(error).__name__}: {str(error)[:200]})")
