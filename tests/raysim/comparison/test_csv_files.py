"""CSV files of outcomes that were made by hand: nothing is rounded, and every run has its line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from raysim.comparison import building, csv_files
from raysim.comparison.table import Page
from tests.raysim.comparison.made import outcomes


def test_every_table_and_the_runs_have_a_file(tmp_path: Path) -> None:
    found = outcomes()
    content = Page(found.title, tuple(building.tables(found)), runs=tuple(building.runs(found)))
    names = [path.name for path in csv_files.write(tmp_path / "two.csv", content)]
    assert names == ["two.csv", "two-differences.csv", "two-tests.csv", "two-runs.csv"]
    means, differences, tests, runs = (pd.read_csv(tmp_path / name) for name in names)
    assert [path.name for path in csv_files.write(tmp_path / "two.csv", Page(found.title, content.tables[:1]))] == [
        "two.csv"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["two.csv"]  # and no table of the page before
    assert csv_files.write(tmp_path / "two.csv", Page(found.title, ())) == [] == [*tmp_path.iterdir()]
    (tmp_path / "two-tests.csv").write_text("a user's own\n")
    csv_files.write(tmp_path / "two.csv", Page(found.title, content.tables[:1]))
    assert (tmp_path / "two-tests.csv").exists()
    assert means[["row", "column", "measure", "runs", "failed"]].to_numpy().tolist()[1] == ["FedAvg", "A", "loss", 3, 0]
    assert (
        means[["mean", "std"]].to_numpy()[0].tolist() == pytest.approx([0.51, 0.01]) and means["std"].isna().sum() == 2
    )
    assert differences[["low", "high", "seeds"]].to_numpy()[0].tolist() == pytest.approx([0.0751586, 0.1248414, 3])
    assert tests["t p"][0] == pytest.approx(0.003316, abs=1e-6) and tests["seeds needed"][0] == 3
    assert len(runs) == 10 and runs["proof"].notna().sum() == 2
    assert runs[["row", "column", "seed", "accuracy", "loss"]].to_numpy()[1].tolist() == ["FedAvg", "A", 1, 0.51, 1.25]
