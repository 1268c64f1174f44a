"""docs/trust.md says what each mode of raysim.verify finds, and how probably: as forgeries and formula have it."""

from __future__ import annotations

import re
from math import comb
from pathlib import Path

import pandas as pd

from benchmarks import trust_cost
from tests.attack.forgeries import COMPUTED, FOLDER

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "trust.md").read_text(encoding="utf-8")


def test_every_forgery_stands_in_the_table_with_the_mode_that_finds_it() -> None:
    found: dict[str, str] = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            found |= dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), cells[1])
    assert {name for name, said in found.items() if said == "yes"} == {*FOLDER}
    assert {name for name, said in found.items() if said != "yes"} == {*COMPUTED}


def test_the_chances_of_spot_checks_are_those_of_the_formula() -> None:
    for checks, share, said in ((20, 0.05, "0.36"), (20, 0.1, "0.12"), (20, 0.2, "0.012"), (100, 0.05, "0.0059")):
        assert f"{(1 - share) ** checks:.2g}" == said and said in PAGE
    assert f"{comb(90, 20) / comb(100, 20):.2g}" == "0.095" and "with\n0.095" in PAGE


def test_the_counts_are_what_the_commands_wrote() -> None:
    pieces = pd.read_csv(DOCS / "results" / "forgeries.csv")
    assert not pieces.duplicated(["door", "seed", "first"]).any()
    sums = pieces.groupby("door")[["tried", "held"]].sum()
    table = [f"| {door} | {row['tried']} | {row['held']} |" for door, row in sums.iterrows()]
    assert "\n".join(["| door | tried | held |", "|---|---|---|", *table]) in PAGE
    runs = pd.read_csv(DOCS / "results" / "verified-runs.csv")
    (actors,) = set(runs["actors"])
    assert f"{(runs['found'] == 'equal').sum()} of {len(runs)} were equal" in PAGE
    assert actors == 2 and "on two client actors" in PAGE


def test_the_costs_are_what_the_benchmark_wrote() -> None:
    rows = pd.read_csv(DOCS / "results" / "trust-cost.csv")
    made = [trust_cost.HEADER]
    for one in trust_cost.COMPARISONS:
        own = rows[(rows["what"] == one.what) & (rows["workload"] == one.workload)]
        made += [trust_cost.line(one, own, name) for name in one.variants if len(own)]
    assert "\n".join(made) in PAGE
