"""A method that is defined in a script: its class reaches Ray's processes by value, where ``__main__`` is another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fingerprint import fingerprint

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("main_method.py")


@pytest.mark.timeout(300)
def test_a_method_of_a_script_runs_on_ray_as_in_process(tmp_path: Path) -> None:
    root = str(SCRIPT.parents[2])
    found = []
    for backend in ("inline", "ray"):
        folder = tmp_path / backend
        done = subprocess.run(
            [sys.executable, str(SCRIPT), backend, str(folder)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(fingerprint(folder))
    assert found[0] == found[1]
