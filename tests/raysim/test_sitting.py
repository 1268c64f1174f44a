"""The lock file of the process that launched a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raysim import sitting
from raysim.errors import ResultsError


def test_two_processes_never_work_on_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitting, "LOCK_SECONDS", 0.1)
    with sitting.sitting(tmp_path):
        assert sitting.is_held(tmp_path / sitting.NAME)
        assert sitting.holder(tmp_path)["process"] == os.getpid()
        with (
            pytest.raises(
                ResultsError, match=r"process \d+ on .* is at work on this run\. Watch it with: python -m ra"
            ),
            sitting.sitting(tmp_path),
        ):
            pass
    assert not sitting.is_held(tmp_path / sitting.NAME)
    with sitting.sitting(tmp_path):  # it let go
        pass
