"""The figures of docs/counterfactuals.md are those of its rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from raysim.contribution.values import leave_one_out, shapley

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "counterfactuals.md").read_text(encoding="utf-8")
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")


def signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def test_the_values_of_the_hospitals_follow_from_their_utilities() -> None:
    rows = pd.read_csv(DOCS / "results/contribution-heart-disease.csv", keep_default_na=False)
    known = {
        frozenset(map(int, str(clients).split())): float(utility)
        for clients, utility in zip(rows["clients"], rows["utility"], strict=True)
    }
    values, left = shapley(range(4), known.__getitem__), leave_one_out(range(4), known.__getitem__)
    for client, name in enumerate(HOSPITALS):
        assert f"| {name} | {signed(values[client].value, 4)} | {signed(left[client].value, 4)} |" in PAGE
    assert f"{known[frozenset(range(4))]:.4f} − {known[frozenset()]:.4f}" in PAGE


def test_the_membership_test_is_its_row() -> None:
    row, other = pd.read_csv(DOCS / "results/contribution-membership.csv").to_dict("records")
    assert f"va's {row['members']} training and {row['others']} test samples" in PAGE
    assert f"{row['before']:.3f} with it and {row['after']:.3f} without it" in PAGE
    ends = f"[{signed(row['low'], 3)}, {signed(row['high'], 3)}]"
    assert f"{signed(row['after'] - row['before'], 3)} {ends}" in PAGE
    assert f"Cleveland the attack\ngave {other['before']:.3f} with its samples" in PAGE


def test_ten_clients_are_their_rows() -> None:
    (cost,) = pd.read_csv(DOCS / "results/contribution-cost.csv").to_dict("records")
    assert cost["coalitions"] == 2 ** cost["clients"] - 1 and cost["seconds"] < 600
    assert f"{int(cost['seconds'])} s, of which {cost['processor_seconds']:.0f} s of processor time" in PAGE
    rows = pd.read_csv(DOCS / "results/contribution-ten-clients.csv")
    values = dict(zip(rows["client"].tolist(), map(float, rows["value"]), strict=True))
    least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    ends = [f"{signed(values[client], 4)} (client {client})" for client in (least, most)]
    assert f"between {ends[0]} and {ends[1]} and add up to {signed(sum(values.values()), 4)}" in PAGE
