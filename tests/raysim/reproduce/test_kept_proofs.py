"""Heads of proofs of a repeated study beside those that were kept."""

from __future__ import annotations

from raysim.reproduce.kept_proofs import compared


def test_equal_other_and_unknown_heads_are_counted() -> None:
    here = {("FedAvg", "A", 0): "aa", ("FedAvg", "A", 1): "bb", ("FedRAD", "A", 0): "cc", ("new", "", 0): "dd"}
    kept = {("FedAvg", "A", 0): "aa", ("FedAvg", "A", 1): "xx", ("FedRAD", "A", 0): "cc", ("gone", "", 0): "dd"}
    found = compared(here, kept)
    assert found.told == {"equal": 2, "other": ["A / FedAvg / seed 1"], "unknown": 1}
    text = "2 runs with the bits that were kept, 1 with others (A / FedAvg / seed 1), 1 of which none were kept."
    assert found.text == f"proofs: {text}"
    assert (
        "0 runs with the bits that were kept, 1 with others"
        in compared({("new", "", 0): "dd"}, {("new", "", 0): "e"}).text
    )
    assert "none of the kept runs is at hand" in compared(here, {}).text
