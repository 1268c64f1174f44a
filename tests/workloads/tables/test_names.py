"""Names of clients and classes are those that a CSV file prints, where numbers would merge some."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.errors import WorkloadError
from raysim.workloads.tables.names import sites_of
from raysim.workloads.tables.table import Table
from tests.workloads.conftest import seeded as stream


def lines_of(sites: Sequence[str], labels: Sequence[str], separator: str = ",") -> str:
    """Ten rows of each site, with the labels in turn, without a header."""
    rows = ((f"{row % 7}.5", site, labels[row % len(labels)]) for row, site in enumerate([*sites] * 10))
    return "".join(f"{separator.join(row)}\n" for row in rows)


def loaded(path: Path, text: str, **options: Any) -> ArrayFederation:
    """The federation of a table with the columns x, site and label."""
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return Table(path=str(path), client_column="site", target="label", min_samples=1, **options).load(stream)


HEADER = "x,site,label\n"


@pytest.mark.parametrize(
    ("sites", "names"),
    [
        # Two of these are one number.
        (["1.1", "1.10", "1.2", "2.1"], ["1.1", "1.10", "1.2", "2.1"]),
        (["01", "1", "001", "2"], ["001", "01", "1", "2"]),
        (["1e400", "2e400"], ["1e400", "2e400"]),
        (["10000000000000000.1", "10000000000000000.2"], ["10000000000000000.1", "10000000000000000.2"]),
        # No two of these are, and names and order are as they always were.
        (["1", "2", "10"], ["1", "10", "2"]),
        (["01", "02", "10"], ["1", "10", "2"]),
        (["1.0", "2.00", "10"], ["1.0", "10.0", "2.0"]),
        (["1", "1.0", "2"], ["1.0", "2.0"]),
        (["True", "TRUE", "false"], ["False", "True"]),
        (["b", "01", "1"], ["01", "1", "b"]),
    ],
)
def test_clients_whose_names_are_one_number_stay_apart(sites: list[str], names: list[str], tmp_path: Path) -> None:
    federation = loaded(tmp_path / "x.csv", HEADER + lines_of(sites, ["a", "b"]))
    table = federation.manifest()
    assert table["name"].tolist() == names
    assert (table["samples"] + table["test_samples"]).sum() == 10 * len(sites)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["01", "1", "2"], ("01", "1", "2")),
        (["10", "9", "09"], ("09", "9", "10")),  # in the order of numbers
        (["10", "9", "08"], ("8", "9", "10")),
        (["1", "1.0", "0", "-0.0"], ("0", "1")),  # as programs write whole numbers
        (["1.0", "0.0"], ("0", "1")),
    ],
)
def test_classes_whose_names_are_one_number_stay_apart(
    labels: list[str], classes: tuple[str, ...], tmp_path: Path
) -> None:
    federation = loaded(tmp_path / "x.csv", HEADER + lines_of(["a", "b", "c"], labels))
    assert federation.class_names == classes and federation.objective.kind == "classification"


def test_a_target_of_numbers_stays_one(tmp_path: Path) -> None:
    text = HEADER + lines_of(["1.1", "1.10"], ["1.1", "1.10", "1.5"])
    federation = loaded(tmp_path / "x.csv", text)
    assert federation.objective.kind == "regression" and len({*federation.labels.tolist()}) == 2
    assert federation.manifest()["name"].tolist() == ["1.1", "1.10"]
    whole = loaded(tmp_path / "x.csv", HEADER + lines_of(["a"], ["01", "1", "2"]), task="regression")
    assert len({*whole.labels.tolist()}) == 2
    assert loaded(tmp_path / "x.csv", text, task="classification").class_names == ("1.1", "1.10", "1.5")


def test_categories_that_are_one_number_stay_apart(tmp_path: Path) -> None:
    rows = "".join(f"{code},site,{label}\n" for code, label in [("01", "a"), ("1", "b"), ("2", "a")] * 10)
    federation = loaded(tmp_path / "x.csv", HEADER + rows, categorical=("x",))
    assert federation.input_spec(0).categories == (4,)  # the fourth: values that no training row has


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_packed_file_without_a_header(separator: str, tmp_path: Path) -> None:
    text = lines_of(["01", " 1 "], ["1", "01"], separator).replace(f"0.5{separator}", f"?{separator}")
    federation = loaded(tmp_path / "x.csv.gz", f"\n{text}\n\n", columns=("x", "site", "label"))
    assert federation.manifest()["name"].tolist() == ["01", "1"] and federation.class_names == ("01", "1")


def test_a_header_with_spaces_and_a_target_that_is_the_last_column(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(" x , site , label \n" + lines_of(["1.10", "1.1"], ["1", "01"]), encoding="utf-8")
    federation = Table(path=str(path), client_column="site", min_samples=1).load(stream)
    assert federation.manifest()["name"].tolist() == ["1.1", "1.10"] and federation.class_names == ("01", "1")


def test_a_target_whose_header_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x,site,\n" + lines_of(["1.10", "1.1"], ["1", "01"]), encoding="utf-8")
    assert Table(path=str(path), clients=2, min_samples=1).load(stream).class_names == ("01", "1")


def test_training_and_test_rows_have_names_in_common(tmp_path: Path) -> None:
    """The names of one file alone would be numbers, and those of the other texts."""
    test = tmp_path / "test.csv"
    test.write_text(HEADER + lines_of(["01", "x"], ["1.0", "0.0"]), encoding="utf-8")
    federation = loaded(tmp_path / "x.csv", HEADER + lines_of(["01", "02"], ["1", "0"]), test_path=str(test))
    assert federation.manifest()["name"].tolist() == ["01", "02"] and federation.class_names == ("0", "1")
    assert federation.test_samples(0) == 10 and "1 of 2 clients have no row in the global test" in federation.notes[0]
    test.write_text(HEADER + lines_of(["1.0", "2.0"], ["1", "01"]), encoding="utf-8")
    federation = loaded(tmp_path / "x.csv", HEADER + lines_of(["1", "2"], ["1", "01"]), test_path=str(test))
    assert federation.manifest()["name"].tolist() == ["1.0", "2.0"] and federation.class_names == ("01", "1")
    assert [federation.test_samples(client) for client in range(2)] == [10, 10]


def test_parquet_files_keep_their_types(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [0.5, 1.5] * 20, "site": [1.5, 2.0] * 20, "label": [1, 1, 2, 2] * 10})
    table.to_parquet(tmp_path / "x.parquet")
    options: dict[str, Any] = {"client_column": "site", "target": "label", "min_samples": 1}
    federation = Table(path=str(tmp_path / "x.parquet"), **options).load(stream)
    assert federation.manifest()["name"].tolist() == ["1.5", "2.0"] and federation.class_names == ("1", "2")
    test = tmp_path / "test.csv"
    test.write_text(HEADER + lines_of(["1.50", "2"], ["01", "2"]), encoding="utf-8")
    both = Table(path=str(tmp_path / "x.parquet"), test_path=str(test), **options).load(stream)
    assert both.manifest()["name"].tolist() == ["1.5", "2.0"] and both.class_names == ("1", "2")
    assert [both.test_samples(client) for client in range(2)] == [10, 10]
    table.astype({"site": str}).replace({"site": {"2.0": "1.50"}}).to_parquet(tmp_path / "x.parquet")
    texts = Table(path=str(tmp_path / "x.parquet"), test_path=str(test), **options).load(stream)
    assert texts.manifest()["name"].tolist() == ["1.5", "1.50"] and texts.test_samples(1) == 10


@pytest.mark.parametrize(
    ("site", "label", "words"),
    [
        ("NA", "1", r"x\.csv: the client_column 'site' is missing in row 41"),
        ("01", "", r"the target 'label' is missing in 1 of 41 rows, first in row 41; leave these rows out"),
    ],
)
def test_a_missing_name_is_told_as_ever(site: str, label: str, words: str, tmp_path: Path) -> None:
    text = HEADER + lines_of(["1", "01", "001", "2"], ["1", "01"]) + f"0.5,{site},{label}\n"
    with pytest.raises(WorkloadError, match=words):
        loaded(tmp_path / "x.csv", text)


def test_spaces_around_a_client_are_none_of_its_name() -> None:
    assert sites_of(pd.DataFrame({"site": ["a ", " a", "b"]}), "", Path("x.csv")) is None
    found = sites_of(pd.DataFrame({"site": ["a ", " a", "b"]}), "site", Path("x.csv"))
    assert found is not None and found.tolist() == ["a", "a", "b"]
