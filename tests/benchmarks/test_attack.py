"""The command of the attack: its table, its rows and its exit code."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from benchmarks import attack
from raysim.cli import interruption
from tests.attack.place import Attempt, Place


def every_fourth(place: Place | None, random: Random) -> Attempt:
    fell = random.random() < 0.25
    return Attempt("nothing", "it fell" if fell else "", made=fell or random.random() < 0.5)


def test_a_door_that_falls_is_counted_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attack, "DOORS", {"made": every_fourth})
    monkeypatch.setattr(interruption, "SIGNALS", interruption.SIGNALS)  # the command takes them from its process
    made = [found for number in range(5, 25) if (found := every_fourth(None, Random(f"3 made {number}"))).made]
    rows = tmp_path / "rows.csv"
    asked = ["--doors", "made", "--seed", "3", "--first", "5", "--share", "0.25", "--rows", str(rows)]
    for _ in range(2):
        assert attack.main(asked) == 1
    out, error = capsys.readouterr()
    tried, fell = len(made), sum(bool(found.fault) for found in made)
    held = tried - fell
    assert 0 < held < tried < 20
    assert out.splitlines() == 2 * ["| door | tried | held |", "|---|---|---|", f"| made | {tried} | {held} |"]
    assert error.count("attempt ") == 2 * fell and "made: nothing: it fell" in error
    assert rows.read_text() == "door,seed,first,tried,held\n" + 2 * f"made,3,5,{tried},{held}\n"
