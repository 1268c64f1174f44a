"""Items one after the other: order, progress, and errors that say which item."""

from __future__ import annotations

import pytest

from raysim.workloads.parallel_map import Sequential, sequential, where


def half(number: int) -> float:
    if number == 4:
        raise ValueError("four")
    return number / 2


def test_results_come_in_the_order_of_the_items() -> None:
    assert sequential(half, [3, 1, 2], "halves") == [1.5, 0.5, 1.0]
    assert sequential(half, [], "halves") == []


def test_progress_is_told_before_the_first_item_and_after_each() -> None:
    seen: list[tuple[str, int, int]] = []
    Sequential(lambda *progress: seen.append(progress))(half, [1, 2], "halves")
    assert seen == [("halves", 0, 2), ("halves", 1, 2), ("halves", 2, 2)]


def test_an_exception_is_that_of_the_item_and_says_which_it_was() -> None:
    with pytest.raises(ValueError, match="four") as caught:
        sequential(half, [1, 4, 2], "halves")
    assert str(caught.value) == "four"
    assert caught.value.__notes__ == [where("halves", 1, 3)] == ["halves, part 2 of 3"]
