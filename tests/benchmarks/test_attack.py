"""The command of the attack: its table, its rows and its exit code; and a small share of every door."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from benchmarks import attack
from raysim.cli import interruption
from tests.attack.place import Attempt, Place

long = pytest.mark.skipif("RAYSIM_LONG_TESTS" not in os.environ, reason="set RAYSIM_LONG_TESTS=1: starts Rays")


def every_fourth(place: Place, random: Random) -> Attempt:
    return Attempt("nothing", "it fell" if random.random() < 0.25 else "")


def test_a_door_that_falls_is_counted_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attack, "DOORS", {"made": every_fourth})
    monkeypatch.setattr(interruption, "SIGNALS", interruption.SIGNALS)  # the command takes them from its process
    draws = [Random(f"3 made {number}").random() < 0.25 for number in range(5, 25)]
    rows = tmp_path / "rows.csv"
    asked = ["--doors", "made", "--seed", "3", "--first", "5", "--share", "0.25", "--rows", str(rows)]
    for _ in range(2):
        assert attack.main(asked) == 1
    out, error = capsys.readouterr()
    held = 20 - sum(draws)
    assert 0 < held < 20
    assert out.splitlines() == 2 * ["| door | tried | held |", "|---|---|---|", f"| made | 20 | {held} |"]
    assert error.count("attempt ") == 2 * (20 - held) and "made: nothing: it fell" in error
    assert rows.read_text() == "door,seed,tried,held\n" + 2 * f"made,3,20,{held}\n"


@pytest.mark.slow
@long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("door", sorted(attack.ON_RAY))
def test_a_small_share_of_the_doors_on_ray(door: str) -> None:
    """Of the others there is one in tests/attack/test_attack.py."""
    assert attack.main(["--doors", door, "--share", "0.05"]) == 0
