from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from raysim.launch import main
from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.table_files import MISSING, read_table
from raysim.workloads.tables.table import Table
from tests.small_runs import small_run
from tests.workloads.conftest import seeded as stream


@pytest.fixture
def patients() -> pd.DataFrame:
    """100 rows, 60 of ward north; who is older than 50 is ill."""
    age = np.random.default_rng(0).permutation(100)
    ward = np.repeat(["north", "south"], [60, 40])
    smokes = np.where(age % 3 == 0, "yes", "no")
    return pd.DataFrame({"age": age, "smokes": smokes, "ward": ward, "ill": np.where(age > 50, "ill", "well")})


def saved(table: pd.DataFrame, path: Path) -> str:
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_wards_are_clients_and_what_was_found_is_told(suffix: str, patients: pd.DataFrame, tmp_path: Path) -> None:
    options = Table(path=saved(patients, tmp_path / f"ill.{suffix}"), client_column="ward", min_samples=1)
    federation = options.load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["north", "south"]
    assert (table["samples"] + table["test_samples"]).tolist() == [60, 40]
    assert federation.global_test_size == 20 and federation.class_names == ("ill", "well")
    assert federation.input_spec(0).categories == (3,) and federation.input_spec(0).input_shape == (2,)
    (note,) = federation.notes
    assert "target ill (2 classes: ill, well); numeric columns: age; categorical" in note
    assert "smokes (2); 0 of 100 rows miss a value" in note
    train = federation.inputs[federation.train.pooled().of(0), 0]
    assert abs(train.mean()) < 1e-6 and train.std() == pytest.approx(1, abs=1e-6)


def test_a_test_table_of_its_own_and_columns_by_name(patients: pd.DataFrame, tmp_path: Path) -> None:
    path = saved(patients[:70], tmp_path / "train.csv")
    test = saved(patients[70:][["ill", "age", "smokes", "ward"]], tmp_path / "test.csv")
    options = Table(path=path, test_path=test, ignore=("ward",), partition="quantile", clients=2, local_test="global")
    federation = options.load(stream)
    assert federation.global_test_size == 30
    assert federation.class_names == ("ill", "well")
    assert federation.test_labels.tolist() == (patients["ill"][70:] == "well").astype(int).tolist()
    ages = [patients["age"][federation.train.of(client)].tolist() for client in range(2)]
    assert max(ages[0]) < min(ages[1]) and len(ages[0]) == 35


def test_a_test_table_whose_column_holds_something_else(patients: pd.DataFrame, tmp_path: Path) -> None:
    """One odd cell made categories of all ages, also for training."""
    path = saved(patients[:70], tmp_path / "train.csv")
    test = patients[70:].astype({"age": str})
    test.loc[72, "age"] = "unknown"
    options = Table(path=path, test_path=saved(test, tmp_path / "test.csv"), clients=2)
    with pytest.raises(WorkloadError, match=r"test\.csv: the column 'age' holds 'unknown' in row 3, and the training"):
        options.load(stream)
    test.loc[72, "age"] = ""
    saved(test, tmp_path / "test.csv")
    assert "numeric columns: age;" in options.load(stream).notes[0]
    test.loc[72, "age"] = "unknown"
    saved(test, tmp_path / "test.csv")
    (note,) = replace(options, categorical=("age",)).load(stream).notes  # as a category it is an unknown one
    assert "numbers of values: age (" in note
    saved(patients[:70].assign(age=None), tmp_path / "train.csv")
    assert "categorical columns" in options.load(stream).notes[0]  # no number that it could contradict


def test_parquet_files_of_decimals_dates_lists_and_a_named_index(tmp_path: Path) -> None:
    count = np.arange(40)
    price = [Decimal(int(number)) / 4 for number in count]
    table = pd.DataFrame({"dose": price[::-1], "day": [date(2026, 1, 1)] * 40, "parts": [[1.0]] * 40, "price": price})
    table.index = pd.Index(np.repeat(["a", "b"], 20), name="ward")
    path = tmp_path / "prices.parquet"
    table.to_parquet(path)
    for name, kind in (("day", "date"), ("parts", "ndarray")):
        with pytest.raises(
            WorkloadError, match=rf"the column '{name}' holds {kind}, which is neither numbers nor text"
        ):
            Table(path=str(path), client_column="ward", ignore=tuple({"day", "parts"} - {name})).load(stream)
    federation = Table(path=str(path), client_column="ward", ignore=("day", "parts")).load(stream)
    assert federation.manifest()["name"].tolist() == ["a", "b"] and federation.objective.kind == "regression"
    assert "numeric columns: dose; categorical columns and their numbers of values: none" in federation.notes[0]
    table.reset_index().set_index("ward", drop=False).to_parquet(path)
    again = Table(path=str(path), client_column="ward", ignore=("day", "parts")).load(stream)
    assert again.manifest()["name"].tolist() == ["a", "b"]


def test_clients_of_whom_the_global_test_has_no_row_are_told_of(patients: pd.DataFrame, tmp_path: Path) -> None:
    patients["ward"] = [*["north "] * 99, "south"]  # spaces around a name are none of it
    patients.loc[:40, "ward"] = "north"
    path = saved(patients, tmp_path / "ill.csv")
    federation = Table(path=path, client_column="ward", min_samples=1).load(stream)
    assert federation.manifest()["name"].tolist() == ["north", "south"]
    assert "1 of 2 clients have no row in the global test, and no local test" in federation.notes[0]
    own = Table(path=saved(patients[60:], tmp_path / "ill.csv"), client_column="ward", global_test_share=0.0)
    assert "no local test" not in own.load(stream).notes[0]


def test_a_file_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1; a; 0\n2; b; 1\n?; a; 1\n4; b; 0\n" * 5, encoding="utf-8")
    options = Table(path=str(path), columns=("size", "kind", "y"), clients=2, min_samples=2, partition="iid")
    federation = options.load(stream)
    assert federation.class_names == ("0", "1") and "5 of 20 rows miss a value" in federation.notes[0]


def test_a_table_with_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    """Both columns were categories, the target with a class for each number."""
    path = tmp_path / "x.csv"
    path.write_text("dose;price\n" + "1;2,5\n0,5;7\n" * 10, encoding="utf-8")
    options = Table(path=str(path), clients=2, min_samples=2)
    with pytest.raises(WorkloadError, match=r"'price' holds numbers with commas, first '2,5', .* or set task to class"):
        options.load(stream)
    with pytest.raises(
        WorkloadError, match=r"'dose' holds numbers with commas, first '0,5', .* or set categorical=dose"
    ):
        replace(options, task="classification").load(stream)
    named = replace(options, task="classification", categorical=("dose",)).load(stream)
    assert named.class_names == ("2,5", "7") and named.input_spec(0).categories == (3,)


def test_an_index_that_pandas_wrote_is_no_input(patients: pd.DataFrame, tmp_path: Path) -> None:
    patients.sort_values("ill").reset_index(drop=True).to_csv(tmp_path / "ill.csv")
    options = Table(path=str(tmp_path / "ill.csv"), clients=2, min_samples=2)
    with pytest.raises(
        WorkloadError, match=r"the first column has no name in the header.* ignore='Unnamed: 0', or give"
    ):
        options.load(stream)
    assert "numeric columns: age; cat" in replace(options, ignore=("Unnamed: 0",)).load(stream).notes[0]
    assert replace(options, client_column="Unnamed: 0", global_test_share=0.0).load(stream).clients == 100


def test_texts_that_stand_for_a_missing_value(tmp_path: Path) -> None:
    lines = [f"{value},{number % 2}" for number, value in enumerate([*MISSING, *map(str, range(20))])]
    (tmp_path / "x.csv").write_text("\n".join(["size,y", *lines]), encoding="utf-8")
    federation = Table(path=str(tmp_path / "x.csv"), clients=2, min_samples=2).load(stream)
    assert {"NULL", "#N/A", "n/a", "NAN"} < set(MISSING)
    assert (
        f"numeric columns: size; categorical columns and their numbers of values: none; {len(MISSING)} of"
        in (federation.notes[0])
    )


def test_a_lone_quotation_mark_takes_in_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "said.tsv"
    path.write_text('text\ty\nfine\t1\n"Well\t0\nno\t0\na "no"\t1\n', encoding="utf-8")
    with pytest.raises(
        WorkloadError,
        match=r"row 2: a value in column 'text' begins with a quotation mark .* if it is one value, write",
    ):
        Table(path=str(path), clients=1, min_samples=1).load(stream)
    path.write_text('text\ty\n"two\nlines"\t1\n"""Well"" he said\tthen"\t0\n', encoding="utf-8")
    found = read_table(path)
    assert found["text"].tolist() == ["two\nlines", '"Well" he said\tthen'] and found["y"].tolist() == [1, 0]


def test_the_test_is_another_file(patients: pd.DataFrame, tmp_path: Path) -> None:
    path = saved(patients, tmp_path / "ill.csv")
    (tmp_path / "same.csv").symlink_to(path)
    with pytest.raises(WorkloadError, match=r"path and test_path are both .*ill\.csv; a test with training data"):
        Table(path=path, test_path=str(tmp_path / "same.csv")).load(stream)


def test_one_command_learns_from_a_table(patients: pd.DataFrame, tmp_path: Path) -> None:
    base = {"workload.name": "table", "workload.path": saved(patients, tmp_path / "ill.csv")}
    options: dict[str, Any] = {"workload__client_column": "ward", "schedule__rounds": 10, "training__batch_size": 8}
    result = run(small_run(tmp_path / "run", base, **options))
    assert result.rounds["accuracy"].iloc[-1] > 0.9
    assert result.model(_row(result)).shape == (1, 2)
    assert "target ill (2 classes" in (tmp_path / "run" / "run.log").read_text(encoding="utf-8")


def prices() -> pd.DataFrame:
    """60 rows: the price is 3 · rooms + 1.5, and the last 20 rows are those of town b."""
    rooms = np.random.default_rng(0).permutation(60)
    return pd.DataFrame({"rooms": rooms, "town": ["a"] * 40 + ["b"] * 20, "price": 3 * rooms + 1.5})


def test_a_target_of_numbers_is_normalized_by_training_rows(tmp_path: Path) -> None:
    table = prices()
    train, test = saved(table[:40], tmp_path / "train.csv"), saved(table[40:], tmp_path / "test.csv")
    federation = Table(path=train, test_path=test, clients=4, local_test="global").load(stream)
    known = table["price"][:40]
    expected = (table["price"] - known.mean()) / known.std(ddof=0)
    assert federation.objective.kind == "regression" and federation.class_names == ()
    np.testing.assert_allclose(federation.labels, expected[:40], rtol=1e-6)
    np.testing.assert_allclose(federation.test_labels, expected[40:], rtol=1e-6)
    assert federation.labels.dtype == np.float32 and federation.input_spec(0).classes == 1
    assert [federation.samples(client) for client in range(4)] == [10] * 4
    assert f"target price (numbers with mean {known.mean():.6g} and standard deviation" in federation.notes[0]
    assert "class_0" not in federation.manifest()


def test_whole_numbers_are_classes_unless_the_task_is_regression(tmp_path: Path) -> None:
    table = prices().assign(price=lambda table: (table["price"] // 60).astype(float))
    path = saved(table, tmp_path / "prices.parquet")
    assert Table(path=path, clients=3).load(stream).class_names == ("0", "1", "2")
    found = Table(path=path, clients=3, task="regression").load(stream)
    assert found.objective.kind == "regression" and abs(found.labels[found.train.pooled().of(0)].mean()) < 1e-6
    sites = Table(path=path, task="regression", client_column="town", min_samples=1).load(stream)
    assert sites.manifest()["name"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partition": "dirichlet"}, "partition=dirichlet goes by classes, and the target price is a number; choose"),
        ({"task": "regression", "target": "town"}, "the target 'town' holds .*, and regression needs numbers"),
        ({"task": "regression", "target": "same"}, "'same' is 1 in every training row; there is nothing to learn"),
        ({"target": "endless", "task": "regression"}, "the target 'endless' holds infinity"),
        ({"target": "price", "ignore": ("price",)}, "the target 'price' is also the client_column or in ignore"),
    ],
)
def test_a_target_that_is_no_number_to_learn(options: Any, words: str, tmp_path: Path) -> None:
    table = prices().assign(same=1, endless=np.inf)[["same", "endless", "rooms", "town", "price"]]
    with pytest.raises(WorkloadError, match=words):
        Table(path=saved(table, tmp_path / "prices.csv"), clients=3, **options).load(stream)


def test_a_client_whose_name_cannot_stand_in_tables(tmp_path: Path) -> None:
    table = prices()
    table.loc[0, "town"] = "t" * 300
    with pytest.raises(WorkloadError, match=r"client_column 'town': client 't{40}'… has a name of 300 characters"):
        Table(path=saved(table, tmp_path / "prices.csv"), client_column="town", task="regression").load(stream)


def test_one_command_learns_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(prices(), tmp_path / "prices.csv")
    monkeypatch.chdir(tmp_path)
    command = f"--method fedprox --workload table --path {path} --clients 3 --rounds 15 --engine.backend inline"
    assert main([*command.split(), "--output", "run", "--pictures", "false", "--training.batch_size", "4"]) == 0
    rounds = pd.read_csv("run/rounds.csv")
    assert rounds["loss"].iloc[-1] < 0.1 * rounds["loss"].iloc[0] and "accuracy" not in rounds
    assert rounds["absolute_error"].iloc[-1] < 0.3


def _row(result: Any) -> Any:
    import torch

    return torch.tensor([[0.5, 2.0]])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": ""}, "workload table needs the option path"),
        ({"path": "nowhere.csv"}, r"no file nowhere\.csv; give the path of a CSV or Parquet file"),
        ({"client_column": "clinic"}, "has no column 'clinic'"),
        ({"clients": 90}, "ill: 90 clients are more than the 80 training samples"),
        ({"partition": "sites"}, "partition=sites needs a column that names the client of every row"),
        ({"partition": "quantile", "quantile_column": "smokes"}, "'smokes' is none; numeric are: age. Set quantile"),
        ({"partition": "pachinko"}, "partition=pachinko needs data whose classes have superclasses"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], words: str, patients: pd.DataFrame, tmp_path: Path) -> None:
    path = saved(patients, tmp_path / "ill.csv")
    with pytest.raises(WorkloadError, match=words):
        Table(**{"path": path, **options}).load(stream)
