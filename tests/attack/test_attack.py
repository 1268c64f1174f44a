"""A few attempts of every attack; ``python -m benchmarks.attack`` makes many."""

from __future__ import annotations

import shutil
from random import Random
from typing import Any

import pytest

from raysim.workloads.images import decode
from tests.attack import images
from tests.attack.attempts import ATTACKS, judged
from tests.attack.corruption import CHANGES, WHOLE_FOLDER, corrupt_file
from tests.attack.place import Place

ATTEMPTS = 5


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("attack"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ATTEMPTS))
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_the_result_is_the_same_or_the_damage_is_said(place: Place, name: str, seed: int) -> None:
    found = ATTACKS[name](place, Random(f"{name} {seed}"))
    assert not found.fault, f"{found.what}: {found.fault}\n{found.error}"


VOUCHED_FOR = ("rounds.csv", "clients.csv", "config.yaml", "checkpoints/round-000006/manifest.json")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["missing", *CHANGES])
@pytest.mark.parametrize("name", VOUCHED_FOR)
def test_every_change_of_what_is_vouched_for_is_said(place: Place, name: str, how: str) -> None:
    """Also where the result would be the same by luck."""
    folder = place.new()
    shutil.copytree(place.whole, folder)
    before = (folder / name).read_bytes()
    what = corrupt_file(folder, folder / name, how, Random(name + how))
    longer = (folder / name).exists() and (folder / name).read_bytes().startswith(before) and name.endswith(".csv")
    found = judged(place, folder, what)
    assert not found.fault, f"{found.what}: {found.fault}\n{found.error}"
    said = "raysim: " if name == "config.yaml" else "damaged: "  # it may not even be YAML any more
    assert longer or said in found.error, (
        found.error
    )  # rows after the last one that is counted are cut, as after a kill


class Newest(Random):
    """Chooses the last of several: the newest checkpoint."""

    def choice(self, sequence: Any) -> Any:
        return sequence[-1]


@pytest.mark.parametrize("change", WHOLE_FOLDER, ids=lambda change: change.__name__)
def test_what_does_not_fit_together_is_said(place: Place, change: object) -> None:
    folder = place.new()
    shutil.copytree(place.whole, folder)
    assert callable(change)
    found = judged(place, folder, change(folder, Newest(1)))
    assert not found.fault, f"{found.what}: {found.fault}\n{found.error}"
    assert "damaged: " in found.error


def test_a_program_that_is_started_for_an_image_is_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "FORMATS", (*decode.FORMATS, "EPS"))
    found = images.trained(place, "PostScript", images.HEADER + b"showpage\n%%EOF\n", "x.png", "folder")
    assert found.fault.startswith("a program was started: ('gs'")
