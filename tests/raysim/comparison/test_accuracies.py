"""Accuracies of two kinds of test sets, told apart by a run's own columns."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from raysim.comparison.accuracies import about_mixed, comparable, is_by_clients, mixed


@pytest.mark.parametrize(
    ("accuracy", "clients", "expected"),
    [
        ([0.5, math.nan, 0.812313], [0.5, math.nan, 0.812312], True),  # the last of six digits, rounded apart
        ([0.5, 0.6], [0.5, 0.601], False),
        ([math.nan], [math.nan], False),
        ([0.5], [math.nan], False),
    ],
)
def test_a_mean_over_clients_is_one_in_every_judged_round(
    accuracy: list[float], clients: list[float], expected: bool
) -> None:
    rounds = pd.DataFrame({"accuracy": accuracy, "client_accuracy_mean": clients})
    assert is_by_clients(rounds) == expected
    assert not is_by_clients(rounds.drop(columns="client_accuracy_mean"))


def test_only_rows_of_both_kinds_are_mixed() -> None:
    assert mixed({"FedAvg": False, "Local": True, "FedPer, new": True}) == ["Local", "FedPer, new"]
    assert mixed({"Local": True}) == mixed({"FedAvg": False}) == mixed({}) == []


def test_accuracies_on_one_common_set_compare() -> None:
    cut, common = ("digits", "cut"), ("digits", "global")
    assert comparable({common}) and not comparable({cut}) and not comparable({cut, common})
    assert comparable({cut, ("nodes", "")})  # rows of two data sets, which are not compared


def test_the_sentence_names_rows_and_columns() -> None:
    text = about_mixed(["Local", "FedPer, new"], "MLP")
    assert text.startswith("The accuracy of Local; FedPer, new in MLP is the mean over clients on their own test sets,")
    assert about_mixed(["Local"]).startswith("The accuracy of Local is the mean")
