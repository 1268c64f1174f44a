"""The benchmark of proofs and portable runs: its turns and its arithmetic; nothing here is timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import trust_cost
from benchmarks.trust_cost import Comparison, line, measured


def test_each_turn_begins_with_another_variant_and_ratios_are_of_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Made:
        def __init__(self, comparison: Comparison, name: str, place: Path, path: Path) -> None:
            self.name, self.seconds = name, iter([0.0, 9.0, *{"a": (2.0, 4.0), "b": (3.0, 5.0)}[name]])

        def begin(self) -> None:
            order.append(self.name)

        def wait(self) -> float:
            return next(self.seconds)

        def end(self) -> None:
            order.append(f"{self.name} ended")

    monkeypatch.setattr(trust_cost, "Variant", Made)
    comparison = Comparison("proof", "W1", "CNN", {"a": (), "b": ()}, {"b": 1.5}, 2)
    found = measured(comparison, Path("data"))
    assert order == ["a", "b", "a", "b", "b", "a", "a ended", "b ended"]  # the first round of W1 is warm-up
    assert dict(zip(zip(found["variant"], found["turn"], strict=True), found["ratio"], strict=True)) == {
        ("a", 1): 1.0, ("b", 1): 1.5, ("a", 2): 1.0, ("b", 2): 1.25,
    }  # fmt: skip
    assert (
        line(comparison, found, "b")
        == "| proof | W1, CNN | b | 4.000 | 1.375 | 1.375 [-0.213, 2.963] | 1.250 to 1.500 | 1.5 |"
    )
