"""What a method is told of the population is the same on Ray as in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.config.run_config import build
from raysim.simulation import run
from tests.fingerprint import fingerprint
from tests.raysim.scaffold import layer


@pytest.mark.usefixtures("ray_session")
def test_scaffold_on_ray_is_scaffold_in_one_process(tmp_path: Path) -> None:
    joins = {"schedule__joins": (2, 2), "schedule__join_every": 2}
    inline = run(build([layer(tmp_path / "inline", **joins)]))
    found = run(build([layer(tmp_path / "ray", **joins, engine__backend="ray", engine__actors=2)]))
    assert fingerprint(found.folder) == fingerprint(inline.folder)
    assert found.rounds["control"].tolist() == [0.0, -2.0, -1.0, -2.5]
