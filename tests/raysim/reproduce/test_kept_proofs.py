"""Heads of proofs of a repeated study beside those that were kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from raysim.reproduce import kept_proofs
from raysim.reproduce.catalog import Reproduction
from raysim.reproduce.kept_proofs import agreement, compared
from raysim.studies.study_file import read
from tests.raysim.reproduce.test_command import TINY


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
