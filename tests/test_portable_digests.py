"""Portable runs have the digests that other processors gave (``python -m tests.portable_digests`` adds one)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raysim import portable
from tests.long_tests import long
from tests.portable_digests import WORKLOADS, computed, kept, methods_of, processor, renewed, versions

FEW = {"digits, cnn": ("fedavg", "scaffold"), "table, mlp": ("ditto",), "text, lstm": ("fedavg",), "graphs": ("gcfl",)}


def equal(runs: dict[str, tuple[str, ...]]) -> None:
    file = kept()
    if file["versions"] != versions():
        pytest.skip(f"the digests are of {file['versions']}")
    if not portable.has_avx2():
        pytest.skip("portable runs need AVX2")
    digests = file["digests"]
    expected = {name: {method: digests[name][method] for method in methods} for name, methods in runs.items()}
    found = computed(runs)
    here: dict[str, str] = next((each["equal"] for each in file["processors"] if each["name"] == processor()), {})
    known = [name for name in runs if here.get(name) == f"{len(digests[name])} of {len(digests[name])}"]
    hint = "after a change of what runs compute: python -m tests.portable_digests --anew"
    assert {name: found[name] for name in known} == {name: expected[name] for name in known}, hint
    if found != expected:
        differing = ", ".join(name for name in runs if found[name] != expected[name])
        pytest.skip(f"on this kind of processor {differing} had not been computed yet, and is another one here: add it")


@pytest.mark.slow
def test_a_few_runs_have_the_digests_of_other_processors() -> None:
    equal(FEW)


@long
def test_all_runs_have_them() -> None:
    equal({name: tuple(methods_of(name)) for name in WORKLOADS})


def test_new_digests_forget_what_processors_gave_on_the_workloads_that_changed() -> None:
    equal = {"digits, cnn": "1 of 1", "graphs": "0 of 1"}
    old = {"name": "A", "equal": equal, "differing": ["graphs: fedssp"]}
    file = {
        "versions": versions(),
        "digests": {"digits, cnn": {"fedavg": "x"}, "graphs": {"fedssp": "y"}},
        "processors": [old, {"name": "B", "equal": {"graphs": "1 of 1"}, "differing": []}],
    }
    found = {"digits, cnn": {"fedavg": "x"}, "graphs": {"fedssp": "z"}}
    kept_ones = [{"name": "A", "equal": {"digits, cnn": "1 of 1"}, "differing": []}]
    assert renewed(file, found) == {"versions": versions(), "digests": found, "processors": kept_ones}
    assert renewed({**file, "versions": {}}, found)["processors"] == []


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
