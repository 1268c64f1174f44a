"""A run's folder, read back."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from raysim.errors import ResultsError
from raysim.results.result import comparable, load_result
from raysim.storage.run_folder import RunFolder


def test_an_unfinished_run_loads_and_a_broken_one_says_so(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", "method: {name: fedavg}\n", {})
    folder.append_round({"round": 1, "accuracy": 0.5})
    assert load_result(folder.path).summary == {}
    (folder.path / "summary.json").write_text("{")
    with pytest.raises(ResultsError, match="Cannot read the run"):
        load_result(folder.path)


def test_timing_columns() -> None:
    frame = pd.DataFrame({"round": [1], "seconds_x": [1.0], "clients_per_second": [2.0], "started": [3], "loss": [4]})
    assert list(comparable(frame).columns) == ["round", "loss"]
