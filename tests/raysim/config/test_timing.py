"""Which modes of virtual time go with which methods, and the table of it in docs/time.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from raysim.config import registry
from raysim.config.run_config import build
from raysim.errors import REFUSED, ConfigError
from raysim.launch import main
from raysim.traits import Traits

METHODS = registry.known("method")
TIMED: dict[str, object] = {"devices.preset": "uniform", "workload.clients": 4}
MODES: dict[str, dict[str, object]] = {
    "async": {"timing.mode": "async"},
    "buffered": {"timing.mode": "buffered", "timing.buffer": 2},
    "buffer of 1": {"timing.mode": "buffered", "timing.buffer": 1},
    "carry": {"timing.mode": "quorum", "timing.late": "carry"},
    "drop": {"timing.mode": "quorum"},
    "sync": {},
}
SEVERAL = {
    *("clustered", "fedgh", "fedld", "fednova", "fedpac"),
    *("fedproto", "fedrad", "fedssp", "gcfl", "qfedavg", "fedgta", "fedpub", "fedtad"),
}
"""Methods that compare or combine several clients: where a step may take one, they are refused."""
ALONE = ("async", "buffer of 1")
VARIANTS: list[tuple[str, dict[str, object], str]] = [
    ("fedld", {"method.principal": False}, "any"),
    ("fedrad", {"method.aggregation": "plain"}, "any"),
    ("fedrad", {"method.aggregation": "weighted"}, "several"),
    ("fedssp", {"method.preference": False}, "any"),
]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "time.md"


def accepted(method: str, mode: str, **options: object) -> bool:
    try:
        build([TIMED, {"method.name": method}, MODES[mode], options])
    except ConfigError as error:
        text = str(error)
        assert method in text and len(re.findall(r"\.(?= |$)", text)) <= 2, "a reason, and what to do"
        return False
    return True


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_with_the_modes_that_it_can_do_with(method: str) -> None:
    found = {mode for mode in MODES if accepted(method, mode)}
    if method == "centralized":
        assert found == set()
    else:
        assert found == (MODES.keys() - ALONE if method in SEVERAL else MODES.keys())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_declares_what_may_be_stale(method: str) -> None:
    assert build([{"method.name": method}]).method.traits.stale != "none"


@pytest.mark.parametrize(("method", "options", "stale"), VARIANTS)
def test_options_of_a_method_may_change_it(method: str, options: dict[str, Any], stale: str) -> None:
    assert build([{"method.name": method}, options]).method.traits.stale == stale
    assert accepted(method, "async", **options) == (stale == "any")


def test_a_method_that_declares_nothing_is_refused_where_updates_may_be_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.resolve("method", "scaffold"), "traits", Traits())
    assert {mode for mode in MODES if accepted("scaffold", mode)} == {"sync", "drop"}


def test_equal_weights_are_those_of_a_buffer_whose_mean_is_taken() -> None:
    uniform: dict[str, object] = {"timing.buffer_weights": "uniform"}
    assert build([TIMED, MODES["buffered"], uniform, {"method.name": "fedadam"}]).timing.buffer_weights == "uniform"
    cases: list[tuple[str, str, str]] = [
        ("buffered", "fednova", "is not possible with method fednova"),
        ("async", "fedavg", "has no effect with timing.mode async"),
    ]
    for mode, method, told in cases:
        with pytest.raises(ConfigError, match=f"timing.buffer_weights: uniform {told}"):
            build([TIMED, MODES[mode], {"method.name": method}, uniform])


def test_a_refusal_is_one_sentence_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--method", "fedproto", "--devices.preset", "phones", "--timing.mode", "async"]
    assert main(words) == REFUSED
    assert "whose prototypes are means over the clients of a step" in capsys.readouterr().err


def test_the_table_of_the_page_is_what_is_accepted() -> None:
    rows = re.findall(
        r"^\| (`.*`) \| (.*?) \| (.*?) \| (.*?) \| .* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    shown = {name: verdicts for names, *verdicts in rows for name in re.findall(r"`([^`]+)`", names)}
    assert sorted(shown) == sorted(METHODS)
    told = {(True, True): "yes", (True, False): "2 or more", (False, False): "no"}
    for method in METHODS:
        can = {mode: accepted(method, mode) for mode in MODES}
        buffered = told[can["buffered"], can["buffer of 1"]]
        assert shown[method] == ["yes" if can["async"] else "no", buffered, "yes" if can["carry"] else "no"], method
