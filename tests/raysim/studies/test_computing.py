"""Cells that several processes share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from raysim import study
from raysim.storage.claims import claimed
from raysim.studies import cell_run, failures, side_by_side, study_file
from tests.raysim.small_study import HERE, fake_run, keep


def test_a_cell_of_another_process_is_left_to_it_and_waited_for(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    monkeypatch.setattr(cell_run, "run_cell", fake_run(made))
    monkeypatch.setattr(side_by_side, "SECONDS", 0.01)
    first, second, *others = study_file.read(small).cells()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(study.main([str(small), *HERE])))
    with claimed(first.path), claimed(second.path):
        thread.start()
        deadline = time.monotonic() + 60
        while len(made) < len(others) and time.monotonic() < deadline:
            time.sleep(0.05)
        keep(first, accuracy=[0.25])
        failures.keep(second, small.parent, "diverged")
    thread.join(60)
    assert made == [cell.name for cell in others] and codes == [1]  # its failure is not tried again, and told
    said = capsys.readouterr()
    assert f"{second.name}: it failed in another process" in said.err
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert "| FedAvg | 37.50 ± 17.68 (2)" in page  # 25 and 50 %


def test_it_says_whom_it_waits_for(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *others = study_file.read(small).cells()
    for cell in others:
        keep(cell, accuracy=[0.5])

    def made_by_the_other(seconds: float) -> None:
        for cell in (first, second):
            keep(cell, accuracy=[0.25])
        release.close()

    monkeypatch.setattr("raysim.studies.side_by_side.time.sleep", made_by_the_other)
    monkeypatch.setattr(cell_run, "run_cell", lambda *rest: pytest.fail("computed again"))
    with ExitStack() as release:
        release.enter_context(claimed(first.path))
        release.enter_context(claimed(second.path))
        assert study.main([str(small), *HERE]) == 0
    assert f"waits for {first.name} and 1 more, at which process {os.getpid()} on " in capsys.readouterr().out


def test_rows_columns_and_seeds_that_were_named_are_computed_alone(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []
    monkeypatch.setattr(cell_run, "run_cell", fake_run(made))
    assert study.main([str(small), *HERE, "--row", "Strong prox", "--column", "MLP"]) == 0
    assert made == ["MLP / Strong prox / seed 0", "MLP / Strong prox / seed 1"]
    assert study.main([str(small), *HERE, "--column", "MLP", "--column", "Logistic", "--row", "FedAvg"]) == 0
    assert made[2:] == ["MLP / FedAvg / seed 0", "MLP / FedAvg / seed 1", "Logistic / FedAvg / seed 5"]
    assert study.main([str(small), *HERE, "--column", "Logistic", "--seeds", "0-1"]) == 0  # its own seed is 5
    assert len(made) == 5
    assert study.main([str(small), *HERE, "--seeds", "1,5", "--row", "Strong prox"]) == 0
    assert made[5:] == ["Logistic / Strong prox / seed 5"]
    capsys.readouterr()
    assert study.main([str(small), *HERE, "--row", "Strong prx"]) == 2
    said = capsys.readouterr().err
    assert f"--row Strong prx: {small} has none of this name. Did you mean Strong prox? Its rows: FedAvg; " in said
    assert study.main([str(small), *HERE, "--seeds", "0-2"]) == 2
    assert f"--seeds 2: {small} has none of this name. Its seeds: 0; 1; 5." in capsys.readouterr().err
    assert len(made) == 6


@pytest.mark.slow
def test_two_processes_share_a_study(small: Path) -> None:
    """Each cell is computed once, both end well, and the table has all of them."""
    command = [sys.executable, "-m", "raysim.study", str(small), *HERE]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    names = [cell.name for cell in study_file.read(small).cells()]
    begun = [line for out, _ in said for line in out.splitlines() if line in names]
    assert sorted(begun) == sorted(names)
    page = (small.parent / "page.md").read_text(encoding="utf-8")
    assert page.count("(2)") == 4 and page.count("(1)") == 4
    assert not [file for file in small.parent.rglob("*") if ".claim" in file.name or ".partial" in file.name]
    assert study.main([str(small), "--table-only"]) == 0
    assert (small.parent / "page.md").read_text(encoding="utf-8") == page
