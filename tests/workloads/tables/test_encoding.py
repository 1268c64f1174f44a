from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.tables import encoding
from raysim.workloads.tables.encoding import classes_of, encode, normalized


def test_an_encoding_by_hand_is_of_the_training_rows_alone() -> None:
    """Training ages 10 and 30: mean 20, deviation 10. A missing age is the mean, a job nobody trained on is 0."""
    table = pd.DataFrame(
        {
            "job": ["nurse", "clerk", None, "judge", "clerk"],
            "age": [10.0, 30.0, np.nan, 1000.0, 15.0],
            "ward": [2, 1, 2, 9, 1],
            "same": [4, 4, 4, 6, 4],
        }
    )
    encoded = encode(table, np.array([0, 1, 2]), ("ward",), "x.csv")
    assert (encoded.numeric, encoded.categorical, encoded.sizes) == (("age", "same"), ("job", "ward"), (4, 3))
    assert encoded.values.dtype == np.float32
    # Jobs are clerk, missing and nurse, wards 1 and 2.
    assert encoded.values.tolist() == [[-1, 0, 3, 2], [1, 0, 1, 1], [0, 0, 2, 2], [98, 2, 0, 0], [-0.5, 0, 1, 1]]


def test_a_constant_with_a_fraction_is_a_constant() -> None:
    """The standard deviation of 36.6, ten times, is 7e-15."""
    column = pd.Series([36.6] * 10 + [37.6], name="fever")
    values = encode(column.to_frame(), np.arange(10), (), "x.csv").values[:, 0]
    assert np.abs(values[:10]).max() < 1e-6 and values[10] == pytest.approx(1)
    with pytest.raises(WorkloadError, match=r"'fever' is 36\.6 in every training row"):
        normalized(column, np.arange(10), "x.csv")


def test_truth_values_are_categories_and_missing_columns_are_zero() -> None:
    table = pd.DataFrame({"sick": [True, False, True], "dose": [np.nan, np.nan, 3.0]})
    assert encode(table, np.array([0, 1]), (), "x.csv").values.tolist() == [[0, 2], [0, 1], [3, 2]]


def test_classes_are_sorted_as_numbers_where_they_are_numbers() -> None:
    names, labels = classes_of(pd.Series([10.0, 9.0, 10.0], name="y"), "x.csv")
    assert names == ("9", "10") and labels.tolist() == [1, 0, 1]
    names, labels = classes_of(pd.Series(["b", "a"], name="y"), "x.csv")
    assert names == ("a", "b") and labels.tolist() == [1, 0]


def test_classes_stand_in_one_order_whatever_the_order_of_a_set() -> None:
    """The text "nan" and equal numbers stood where the process's hashes put them."""
    expected = ["-inf", "01", "1", "2", "10", "nan"]
    assert classes_of(pd.Series(expected, name="y"), "x.csv")[0] == tuple(expected)
    assert all(sorted(order, key=encoding._place) == expected for order in itertools.permutations(expected))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            pd.Series([f"id {number}" for number in range(150)]),
            r"150 different texts in 150 training rows \(id 0, id 1",
        ),
        (pd.Series(["2,5", None, " -3 ", "1.250,5"] * 40), r"numbers with commas, first '2,5', .* set categorical=x$"),
        (pd.Series(["7", "1,250"] * 75), "numbers with commas, first '1,250', which would be taken for categories"),
        (pd.to_datetime(pd.Series(["2020-01-01"] * 150)), "which is neither numbers nor text; convert it, or leave"),
    ],
)
def test_columns_that_are_no_input(column: pd.Series, words: str) -> None:
    with pytest.raises(WorkloadError, match=rf"x\.csv: the column 'x' .*{words}"):
        encode(pd.DataFrame({"x": column}), np.arange(150), (), "x.csv")


def test_texts_with_commas_that_are_no_numbers_or_are_called_categories() -> None:
    rows = np.arange(4)
    for column in (
        pd.Series(["2,5", "a", "1", "b"]),
        pd.Series(["2.5", "", "1", "x"]),
        pd.Series(["a,b", "1", "2", "3"]),
    ):
        assert encode(column.to_frame("x"), rows, (), "x.csv").categorical == ("x",)
    assert encode(pd.DataFrame({"x": ["2,5", "1,5"] * 2}), rows, ("x",), "x.csv").sizes == (3,)


def test_a_column_without_a_name_is_no_input() -> None:
    table = pd.DataFrame({"Unnamed: 0": [0, 1], "age": [1, 2]})
    with pytest.raises(
        WorkloadError, match=r"x\.csv: the first column has no name .* with ignore='Unnamed: 0', or give"
    ):
        encode(table, np.arange(2), (), "x.csv")
    assert encode(table, np.arange(2), ("Unnamed: 0",), "x.csv").categorical == ("Unnamed: 0",)


def test_targets_that_are_no_classes() -> None:
    with pytest.raises(WorkloadError, match="has 2000 different values, and at most 1000 classes"):
        classes_of(pd.Series(np.arange(2000) / 7, name="y"), "x.csv")
