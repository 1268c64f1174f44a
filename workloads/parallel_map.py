"""Maps a function over many items: in this process here, as Ray tasks in actors/parallel_map.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

OnProgress = Callable[[str, int, int], None]
"""Called with (label, items done, items in all): once before the first item and after each."""


class Parallel(Protocol):
    """Computes ``function`` of every item; the results come in the order of the items.

    ``function`` is defined at the top of a module and depends on nothing but its item, which is small and can be
    pickled; so the results are the same wherever and in whatever order they are computed. ``label`` says in plural what
    the items are ("eigendecompositions"), for progress and errors.
    """

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        """Apply the function to every item; results in the order of the items."""
        ...


def silent(label: str, done: int, total: int) -> None:
    """Progress that is shown nowhere."""


@dataclass(frozen=True)
class Sequential:
    """One item after the other, in this process. What an item raises is raised as it is, with a note which it was."""

    progress: OnProgress = silent

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        """Apply the function to one item after another."""
        results: list[Result] = []
        self.progress(label, 0, len(items))
        for item in items:
            try:
                results.append(function(item))
            except Exception as error:
                error.add_note(where(label, len(results), len(items)))
                raise
            self.progress(label, len(results), len(items))
        return results


sequential: Parallel = Sequential()


def where(label: str, index: int, total: int) -> str:
    """The words for item ``index`` (from 0) of ``total``: "eigendecompositions, part 3 of 17"."""
    return f"{label}, part {index + 1} of {total}"
