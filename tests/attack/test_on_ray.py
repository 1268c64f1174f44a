"""A few attempts of the attack's doors on Ray; ``python -m benchmarks.attack`` makes many."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.attack.hostile_head import joined
from tests.attack.on_ray import fallen, struck
from tests.attack.place import Place

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    ("who", "kind"),
    [("driver", "local noise, top-k, a rule, in virtual time"), ("actor", "two thousand clients")],
)
def test_a_run_goes_on_after_a_death(who: str, kind: str, tmp_path: Path) -> None:
    found = fallen(Place(tmp_path), kind, who, 2)
    assert found.made and not found.fault, f"{found.what}: {found.fault}\n{found.error}"


@pytest.mark.timeout(600)
def test_a_run_that_is_ended_in_mid_buffer_is_resumed(tmp_path: Path) -> None:
    found = struck(Place(tmp_path), "SIGTERM to the launcher", "int8 and gaussian, in virtual time")
    assert not found.fault, f"{found.what}: {found.fault}\n{found.error}"


@pytest.mark.timeout(600)
def test_a_head_that_lies_after_its_first_answer(tmp_path: Path) -> None:
    found = joined(Place(tmp_path), "mixed", False, Random(0), limit=5)
    assert not found.fault, f"{found.what}: {found.fault}\n{found.error}"
