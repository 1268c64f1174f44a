from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from raysim.config.run_config import RunConfig, with_sections
from raysim.errors import ConfigError, ResultsError
from raysim.replay.change import Change, check_change, client_numbers
from raysim.schedule import common_rounds
from tests.attack.folders import small


def longer(config: RunConfig) -> RunConfig:
    return with_sections(config, schedule=replace(config.schedule, rounds=12))


def test_a_longer_replay_goes_on_from_rounds_that_a_longer_run_has_too(tmp_path: Path) -> None:
    drawn: dict[str, Any] = {"schedule__intervals": "random", "schedule__local_epochs": 2, "schedule__rounds": 6}
    stored = small(tmp_path / "run", method__name="fedavg", **drawn)
    common = common_rounds(stored, 12)
    assert 0 < common < 5
    check_change(Change(common + 1), stored, longer(stored))
    with pytest.raises(ConfigError, match=rf"--from {common + 2}: the rounds before depend on schedule\.rounds too"):
        check_change(Change(common + 2), stored, longer(stored))


def test_a_method_that_looks_at_the_number_of_rounds_is_replayed_longer_from_the_start(tmp_path: Path) -> None:
    stored = small(tmp_path / "run", method__name="apple")
    with pytest.raises(ConfigError, match=r"--from 2: the rounds before depend on schedule\.rounds too"):
        check_change(Change(2), stored, longer(stored))
    check_change(Change(1), stored, longer(stored))


def clients_named(*names: str) -> pd.DataFrame:
    return pd.DataFrame({"client": range(len(names)), "name": names})


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        (["0"], (0,)),
        (["2", "ward"], (2, 3)),
        (["number=1"], (1,)),
        (["name=1"], (0,)),
    ],
)
def test_a_client_is_named_by_number_or_name(asked: list[str], numbers: tuple[int, ...]) -> None:
    assert client_numbers(asked, clients_named("1", "x", "y", "ward")) == numbers


@pytest.mark.parametrize(
    ("asked", "names", "message"),
    [
        ("1", ("1", "2", "3"), r"several clients are called so: 0 \(1\), 1 \(2\)\. Say number=1 or name=1\."),
        ("a", ("a", "a", "b"), r"several clients are called so: 0 \(a\), 1 \(a\)\. Say number=NUMBER\."),
        ("1", ("1", "b", "1"), r"0 \(1\), 1 \(b\), 2 \(1\)\. Say number=NUMBER\."),
        ("number=4", ("a", "4"), r"no such client took part\. Those that did: 0 \(a\), 1 \(4\)\."),
        ("name=1", ("a", "b"), "no such client took part"),
    ],
)
def test_a_name_of_several_clients_leaves_none_out(asked: str, names: tuple[str, ...], message: str) -> None:
    """The client whose name is the number of another one was left out, and of one name the last."""
    with pytest.raises(ResultsError, match=rf"^--without {asked}: .*{message}"):
        client_numbers([asked], clients_named(*names))
