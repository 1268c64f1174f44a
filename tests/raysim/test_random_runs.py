"""A few runs with settings drawn at random (``python -m tests.random_runs`` draws as many as are asked for)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.random_runs import outcome


@pytest.mark.slow
def test_settings_drawn_at_random_are_refused_or_give_the_same_bits_again(tmp_path: Path) -> None:
    found = {number: outcome(number, tmp_path / str(number)) for number in range(24)}
    assert set(found.values()) == {"refused", "equal"}, found
