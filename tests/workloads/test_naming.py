"""What a run's data is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.monitor.progress import title_of
from raysim.storage.run_folder import new_run_path
from raysim.workloads.naming import data_name, unfit


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ({"name": "digits"}, "digits"),
        ({"name": "npz", "path": "/data/breastmnist.npz"}, "breastmnist"),
        ({"name": "npz", "path": "blood.v2"}, "blood.v2"),
        ({"name": "npz", "path": ""}, "npz"),
        ({"name": "folder", "path": "/data/flowers/"}, "flowers"),
        ({"name": "folder", "path": "/data/list.csv"}, "list"),
        ({"name": "table", "path": "ill.csv"}, "ill"),
        ({"name": "tudataset", "setting": "SM-CV", "sets": []}, "SM-CV"),
        ({"name": "tudataset", "setting": "SM", "sets": ["MUTAG", "BZR"]}, "MUTAG+BZR"),
        ({"name": "tudataset", "setting": "SM", "sets": list("ABCDE")}, "A+B+C and 2 more"),
        ({}, "?"),
    ],
)
def test_data_is_named_by_its_settings(section: dict[str, object], name: str) -> None:
    assert data_name(section) == name


def test_a_run_folder_has_no_colon_and_the_name_of_its_data(tmp_path: Path) -> None:
    path = new_run_path(tmp_path, "my.package:Method", "A+B+C and 2 more", 3)
    assert path.name.startswith("my.package-Method-A+B+C-and-2-more-seed3-") and ":" not in path.name
    assert len(new_run_path(tmp_path, "m" * 300, "d" * 300, 0).name) < 200


def test_the_title_names_the_data() -> None:
    config = {
        "method": {"name": "fedavg"},
        "workload": {"name": "npz", "path": "x/blood.npz"},
        "model": {"name": "cnn"},
        "seed": 0,
    }
    assert title_of(config) == "fedavg on blood with cnn, seed 0"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ward 7 – Süd", ""),
        ("n" * 200, ""),
        ("", "has an empty name"),
        ("n" * 201, "has a name of 201 characters, and 200 are allowed"),
        ("a\x00b", "has a name with signs that are no characters of a text"),
        ("a\ud800", "has a name with signs that are no characters of a text"),
        ("two\nlines", "has a name with signs that are no characters of a text"),
    ],
)
def test_names_that_cannot_stand_in_tables(name: str, reason: str) -> None:
    assert unfit(name) == reason
