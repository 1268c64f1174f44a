"""The lock file of the process that launched a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.storage import process_lock


def test_two_processes_never_work_on_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lock, "LAUNCHER_SECONDS", 0.1)
    with process_lock.launching(tmp_path):
        assert process_lock.is_held(tmp_path / process_lock.LAUNCHER)
        assert process_lock.holder(tmp_path)["process"] == os.getpid()
        with (
            pytest.raises(
                ResultsError, match=r"process \d+ on .* is at work on this run\. Watch it with: python -m ra"
            ),
            process_lock.launching(tmp_path),
        ):
            pass
    assert not process_lock.is_held(tmp_path / process_lock.LAUNCHER)
    with process_lock.launching(tmp_path):  # it let go
        pass


def test_one_process_at_a_time_drives_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lock, "DRIVER_SECONDS", 0.1)
    with (
        process_lock.launching(tmp_path),  # another process than the driver, as a rule
        process_lock.driving(tmp_path),
        pytest.raises(ResultsError, match="another process is at work on this run; wait for it"),
        process_lock.driving(tmp_path),
    ):
        pass
    with process_lock.driving(tmp_path):
        pass
