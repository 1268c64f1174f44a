"""Tells apart rows of a table whose accuracies are of different test sets: each client's own, or a common one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

EQUAL = 2e-6
"""Largest distance of equal accuracies: a study keeps six digits, and both are added up in an order of their own."""


def is_by_clients(rounds: DataFrame) -> bool:
    """Whether a run's accuracy is the mean over its clients', as that of personal models is."""
    if not {"accuracy", "client_accuracy_mean"} <= set(rounds):
        return False
    judged = rounds.dropna(subset=["accuracy"])
    apart = (judged["accuracy"] - judged["client_accuracy_mean"]).abs()
    return len(judged) > 0 and bool((apart < EQUAL).all())


def comparable(workloads: Collection[tuple[str, str]]) -> bool:
    """Whether accuracies on clients' own test sets and on a common one compare all the same.

    They do where every client's test set is the common one (``local_test: global``). Rows of several data sets are not
    compared at all.

    Args:
        workloads: name and ``local_test`` of each row's.
    """
    return len({name for name, _ in workloads}) > 1 or {local_test for _, local_test in workloads} == {"global"}


def mixed(rows: Mapping[str, bool]) -> list[str]:
    """The rows whose accuracy is the mean over clients, if that of others is not; else none.

    Args:
        rows: row → whether its accuracy is the mean over clients.
    """
    own = [row for row, by_clients in rows.items() if by_clients]
    return own if len(own) < len(rows) else []


def about_mixed(rows: Sequence[str], where: str = "") -> str:
    """The sentence over a table with accuracies of both kinds.

    Args:
        rows: those whose accuracy is the mean over clients.
        where: the columns of the table that it is about; empty: all.
    """
    return (
        f"The accuracy of {'; '.join(rows)}{f' in {where}' if where else ''} is the mean over clients on their own "
        "test sets, that of the others is on a common one: they do not compare. The measure client_accuracy_mean "
        "compares like with like."
    )
