"""The result of a run is a function of its config: inline = Ray = killed = stopped and resumed.

Whole runs with all their processes; every other method, on actors that are lent, is in test_every_method.py.
"""

from __future__ import annotations

import pytest

from raysim.simulation import run
from tests.actors.processes import Killer
from tests.actors.runs import METHODS, options, undisturbed
from tests.fingerprint import fingerprint
from tests.small_runs import MakeConfig
from tests.watch import stopped


@pytest.mark.usefixtures("ray_session")
def test_the_driver_killed_goes_on_from_its_checkpoint_by_itself(make_config: MakeConfig) -> None:
    """Of a method without client states; test_faults.py has one with them, and what befalls client actors."""
    expected = undisturbed(make_config, "fedrad")
    killer = Killer("ray::DriverActor", round=3)
    found = run(make_config("driver", engine__actors=2, **options("fedrad")), observer=killer)
    assert killer.killed
    assert any("the driver died" in note for note in killer.notes)
    assert any("goes on after round" in note for note in killer.notes)
    assert fingerprint(found.folder) == expected


@pytest.mark.parametrize("method", METHODS)
def test_stopped_in_a_round_and_resumed_gives_the_same_bits(make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    # Checkpoints further apart than the stop: it is the stop itself that must save the last whole round.
    config = make_config(f"{method}-stopped", engine__backend="inline", engine__checkpoint_every=100, **options(method))
    folder = stopped(config, rounds=2)
    assert not (folder / "summary.json").exists()
    assert fingerprint(run(config, resume=folder).folder) == expected
