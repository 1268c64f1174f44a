"""A few attempts of the attack's doors on Ray; ``python -m benchmarks.attack`` makes many.

Parts of Ray and the launching process are killed and frozen in tests/actors/test_hangs.py and test_launch.py.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.attack.hostile_head import joined
from tests.attack.on_ray import fallen
from tests.attack.place import Place
from tests.attack.relay import turned
from tests.long_tests import long

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    ("who", "kind"),
    [
        pytest.param("driver", "local noise, top-k, a rule, in virtual time", marks=long),
        ("actor", "two thousand clients"),
    ],
)
def test_a_run_goes_on_after_a_death(who: str, kind: str, tmp_path: Path) -> None:
    found = fallen(Place(tmp_path), kind, who, 2)
    assert found.made and not found.fault, f"{found.what}: {found.fault}\n{found.error}"


@pytest.mark.timeout(600)
def test_a_head_that_lies_after_its_first_answer(tmp_path: Path) -> None:
    found = joined(Place(tmp_path), "mixed", False, Random(0), limit=5)
    assert not found.fault, f"{found.what}: {found.fault}\n{found.error}"


@long
@pytest.mark.usefixtures("ray_session")
@pytest.mark.timeout(600)
def test_a_head_that_falls_silent_while_the_driver_starts(tmp_path: Path) -> None:
    found = turned(Place(tmp_path), "silence", 3500, Random(0))
    assert found.made and not found.fault, f"{found.what}: {found.fault}\n{found.error}"
