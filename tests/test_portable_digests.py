"""Portable runs have the digests that other processors gave (``python -m tests.portable_digests`` adds one)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raysim import portable
from tests.long_tests import long
from tests.portable_digests import WORKLOADS, computed, kept, methods_of, versions

FEW = {"digits, cnn": ("fedavg", "scaffold"), "table, mlp": ("ditto",), "text, lstm": ("fedavg",), "graphs": ("gcfl",)}


def equal(runs: dict[str, tuple[str, ...]]) -> None:
    file = kept()
    if file["versions"] != versions():
        pytest.skip(f"the digests are of {file['versions']}")
    if not portable.has_avx2():
        pytest.skip("portable runs need AVX2")
    found = computed(runs)
    expected = {name: {method: file["digests"][name][method] for method in methods} for name, methods in runs.items()}
    assert found == expected, "after a change of what runs compute: python -m tests.portable_digests --anew"


@pytest.mark.slow
def test_a_few_runs_have_the_digests_of_other_processors() -> None:
    equal(FEW)


@long
def test_all_runs_have_them() -> None:
    equal({name: tuple(methods_of(name)) for name in WORKLOADS})


def test_processors_and_what_they_agreed_on_stand_in_the_page() -> None:
    page = (Path(__file__).parents[1] / "docs" / "trust.md").read_text(encoding="utf-8")
    file = kept()
    assert {name: len(methods) for name, methods in file["digests"].items()} == dict.fromkeys(WORKLOADS, 10)
    rows = [
        f"| {each['name']} | {' | '.join(each['equal'].get(name, '–') for name in WORKLOADS)} |"
        for each in file["processors"]
    ]
    assert [row for row in rows if row not in page] == []
    assert len(re.findall(r"^\| .*\d+ of 10", page, re.MULTILINE)) == len(rows)
