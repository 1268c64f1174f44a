"""Options that are typed with a value that nothing reads, and those that switch something off."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.config.command_line import parse
from raysim.config.run_config import build
from raysim.config.typed_options import check_typed
from raysim.errors import ConfigError


def test_one_run_that_reads_an_option_is_enough() -> None:
    fedavg = {"method.name": "fedavg"}
    plain, private = build([fedavg]), build([fedavg, {"privacy.kind": "central", "privacy.noise_multiplier": 1.0}])
    check_typed(["privacy.clip"], [plain, private])
    with pytest.raises(ConfigError, match=r"privacy.clip: 1.0 has no effect with privacy.kind none"):
        check_typed(["privacy.clip"], [plain, plain])


def test_what_a_file_sets_can_be_switched_off(tmp_path: Path) -> None:
    """The bound of what is off was refused, with the file's value and with the default."""
    file = tmp_path / "private.yaml"
    file.write_text("privacy: {kind: central, clip: 0.5, noise_multiplier: 1}\n", encoding="utf-8")
    off = ["--config", str(file), "--method", "fedavg", "--privacy.kind", "none", "--privacy.noise_multiplier", "null"]
    assert parse([*off, "--privacy.clip", "1"]).config.privacy.clip == 1.0
    with pytest.raises(ConfigError, match=r"privacy.clip: 0.5 has no effect with privacy.kind none"):
        parse(off)


def test_a_typed_value_may_switch_off_what_is_off() -> None:
    assert parse(["--join_every", "0", "--attack.kind", "none", "--method", "fedavg"]).config.schedule.join_every == 0
