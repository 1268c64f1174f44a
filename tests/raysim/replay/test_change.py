from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import RunConfig, with_sections
from raysim.errors import ConfigError
from raysim.replay.change import Change, check_change
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
