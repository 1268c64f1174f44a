"""The lock file of the process that launched a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.storage import process_lock


def test_two_processes_never_work_on_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lock, "LOCK_SECONDS", 0.1)
    with process_lock.sitting(tmp_path):
        assert process_lock.is_held(tmp_path / process_lock.NAME)
        assert process_lock.holder(tmp_path)["process"] == os.getpid()
        with (
            pytest.raises(
                ResultsError, match=r"process \d+ on .* is at work on this run\. Watch it with: python -m ra"
            ),
            process_lock.sitting(tmp_path),
        ):
            pass
    assert not process_lock.is_held(tmp_path / process_lock.NAME)
    with process_lock.sitting(tmp_path):  # it let go
        pass
