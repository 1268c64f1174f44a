"""States and updates that are larger than the object store: Ray moves states to the disk, updates wait in a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from raysim.engine.observer import Silent
from raysim.running.simulation import run
from tests.actors.clusters import add_node, cluster_here
from tests.actors.runs import driven_here
from tests.fingerprint import fingerprint
from tests.small_runs import small_run

BASE = {
    "workload.name": "digits",
    "workload.partition": "views",
    "workload.clients": 30,
    "workload.view_samples": 5,
    "model.name": "mlp",
    "model.hidden": 12288,
    "schedule.rounds": 2,
    "schedule.local_epochs": 1,
    "evaluation.every": 2,
    "engine.checkpoint_every": 1,
}
"""922 thousand values, 3.7 MB a client: 111 MB in all, and the worker's store has 80."""


class Spilled(Silent):
    """Remembers how many bytes of objects are on the disk after every round."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bytes = folder, list[int]()

    def round_finished(self, row: Mapping[str, Any]) -> None:
        self.bytes.append(0)
        for path in self.folder.rglob("*"):
            with suppress(FileNotFoundError):  # Ray has taken it away meanwhile
                self.bytes[-1] += path.stat().st_size * path.is_file()


@pytest.mark.slow
def test_a_small_object_store_changes_nothing(tmp_path: Path) -> None:
    small: dict[str, Any] = {"object_store_memory": 80 << 20, "object_spilling_directory": str(tmp_path / "spill")}
    methods, spilled = ("local", "fedld"), Spilled(tmp_path / "spill")
    with cluster_here(num_cpus=0, **small) as cluster:
        add_node(cluster, num_cpus=1, **small)
        for method in methods:
            on_ray = small_run(tmp_path / f"{method}-ray", BASE, method__name=method, engine__backend="ray")
            driven_here(on_ray, spilled)
    assert max(spilled.bytes[:2]) > 10 << 20
    for method in methods:
        inline = run(small_run(tmp_path / f"{method}-inline", BASE, method__name=method))
        assert fingerprint(tmp_path / f"{method}-ray") == fingerprint(inline.folder)
