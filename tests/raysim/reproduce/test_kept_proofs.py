"""Heads of proofs of a repeated study beside those that were kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from raysim.reproduce import kept_proofs
from raysim.reproduce.catalog import Reproduction
from raysim.reproduce.kept_proofs import agreement, compared, equal_numbers
from raysim.studies.study_file import read
from tests.raysim.reproduce.test_command import TINY


def test_equal_other_and_unknown_heads_are_counted() -> None:
    here = {("FedAvg", "A", 0): "aa", ("FedAvg", "A", 1): "bb", ("FedRAD", "A", 0): "cc", ("new", "", 0): "dd"}
    kept = {("FedAvg", "A", 0): "aa", ("FedAvg", "A", 1): "xx", ("FedRAD", "A", 0): "cc", ("gone", "", 0): "dd"}
    found = compared(here, kept)
    assert found.told == {"equal": 2, "other": ["A / FedAvg / seed 1"], "same_digits": 0, "unknown": 1}
    text = "2 runs with the bits that were kept, 1 with others (A / FedAvg / seed 1), 1 of which none were kept."
    assert found.text == f"proofs: {text}"
    assert (
        "0 runs with the bits that were kept, 1 with others"
        in compared({("new", "", 0): "dd"}, {("new", "", 0): "e"}).text
    )
    assert "none of the kept runs is at hand" in compared(here, {}).text


def test_a_run_with_another_head_may_have_the_same_numbers() -> None:
    first, second, third = (("FedAvg", "A", seed) for seed in (0, 1, 2))
    here, kept = {first: "aa", second: "bb", third: "cc"}, {first: "xx", second: "yy", third: "cc"}
    found = compared(here, kept, {first, third})
    assert (found.equal, found.same_digits) == (1, 1) and len(found.other) == 2
    assert "seed 1), 1 of them with the same numbers to the last printed digit." in found.text


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("round,epochs_total,loss\n1,2,0.5\n2,4,0.25\n", True),
        ("round,epochs_total,loss,new\n1,2,0.5,7\n2,4,0.25,8\n", True),
        ("round,epochs_total,loss\n1,2,0.5\n2,4,0.26\n", False),
        ("round,epochs_total,loss\n1,2,0.5\n", False),
        ("round,epochs_total,other\n1,3,1\n2,6,2\n", False),
    ],
)
def test_numbers_are_compared_as_they_are_printed(tmp_path: Path, text: str, equal: bool) -> None:
    (tmp_path / "kept.csv").write_text("round,epochs_total,loss\n1,2,0.5\n2,4,0.25\n", encoding="utf-8")
    (tmp_path / "here.csv").write_text(text, encoding="utf-8")
    assert equal_numbers(tmp_path / "here.csv", tmp_path / "kept.csv") == equal
    assert not equal_numbers(tmp_path / "absent.csv", tmp_path / "kept.csv")


def test_a_repeated_study_is_compared_with_the_one_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Reproduction("tiny", "Table 9", TINY)
    for place in ("kept", "here"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "tiny.yaml").write_text(yaml.safe_dump(tiny.at("kept")), encoding="utf-8")
    monkeypatch.setattr(kept_proofs, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(kept_proofs, "heads", lambda study: {("FedAvg", "", 0): study.path.parent.name})
    assert agreement(tiny, read(tmp_path / "here/tiny.yaml")).other == ("FedAvg / seed 0",)
    assert agreement(tiny, read(tmp_path / "kept/tiny.yaml")).equal == 1
