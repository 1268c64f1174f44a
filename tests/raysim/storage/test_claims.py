"""Claims on work: one process at a time, and none that outlives its process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from raysim.storage import claims
from raysim.storage.claims import alone, claim_of, claimant, claimed
from tests.processes import within

HOLD = """
import sys, time
from pathlib import Path
from raysim.storage.claims import claimed
with claimed(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


def test_one_at_a_time_and_nothing_is_left(tmp_path: Path) -> None:
    cell = tmp_path / "column" / "row-seed0.csv"
    with claimed(cell) as mine:
        assert mine and claim_of(cell).exists() and "process " in claimant(cell)
        with claimed(cell) as second, claimed(cell.with_name("other.csv")) as other:
            assert not second and other
        assert claim_of(cell).exists()  # who did not get it leaves it
    assert not list(cell.parent.iterdir())
    with pytest.raises(ValueError, match="inside"), claimed(cell):
        raise ValueError("inside")
    with claimed(cell) as again:
        assert again


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    cell = tmp_path / "row.csv"
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(cell)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "True\n"
    with claimed(cell) as mine:
        assert not mine and f"process {other.pid} on" in claimant(cell)
    other.kill()
    other.wait()
    assert claim_of(cell).exists()
    with claimed(cell) as mine:
        assert mine


@pytest.mark.parametrize("silence", [0.0, 600.0])
def test_who_wants_to_be_alone_waits_and_says_so_once(
    silence: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(claims, "SECONDS", 0.01)
    monkeypatch.setattr(claims, "SILENCE", silence)
    page, order, heard = tmp_path / "page.md", list[str](), list[str]()

    def second() -> None:
        with alone(page):
            order.append("second")

    def said_by_now() -> bool:
        heard.append(capsys.readouterr().err)
        return "waiting" in "".join(heard)

    thread = threading.Thread(target=second)
    with alone(page):
        thread.start()
        within(0.1 if silence else 20, said_by_now)
        order.append("first")
    thread.join(20)
    assert order == ["first", "second"]
    said = "".join(heard) + capsys.readouterr().err
    assert said.count(f"waiting for process {os.getpid()} on") == (silence == 0)
    assert silence or said.endswith(f"which is at work on {page}\n")
