"""Too many client tasks on a GPU: fewer at a time, and the same bits. No GPU is needed: the client tasks say so."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ray import cloudpickle

from raysim.actors.capacity import Placement
from raysim.actors.own_ray import state
from raysim.actors.pool import RayPool
from raysim.client_side.device import run_task
from raysim.errors import GpuMemoryError, RaysimError
from raysim.exchange.pool_protocol import Job
from raysim.methods.local import Local
from raysim.monitor.status_file import read
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from tests.actors.light import LightStarter
from tests.fingerprint import fingerprint
from tests.small_runs import LOGISTIC, small_run, with_engine
from tests.watch import Watch

# Actors cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

TORCHS_WORDS = "CUDA out of memory. Tried to allocate 2.00 GiB. If reserved but unallocated memory is large try"


def take_part(folder: str, most: int) -> None:
    """Be at work in one of at most ``most`` processes; torch's error if there are more. The first wait for that."""
    sign, seen = Path(folder) / str(os.getpid()), Path(folder) / "too-many"
    sign.touch()
    first = not seen.exists()
    deadline = time.monotonic() + (60 if first else 0.05)
    while time.monotonic() < deadline and not (first and seen.exists()):
        # A process that was killed at work has left its sign; until its parent asks for it, it is a zombie.
        others = [int(path.name) for path in Path(folder).iterdir() if path.name.isdecimal()]
        if sum(state(number) not in ("", "Z") for number in others) > most:
            seen.touch()
            raise torch.OutOfMemoryError(TORCHS_WORDS)
        time.sleep(0.01)
    sign.unlink()


@dataclass(frozen=True)
class Crowded(Local):
    """Local training, of which a GPU takes at most N at a time (0: any); its client tasks leave signs in a folder.

    No options: neither fields nor type hints survive being sent by value.
    """

    folder = ""
    most = 0

    def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> Any:
        if self.most and task.round > 1:
            take_part(self.folder, self.most)
        return super().train(model, data, message, state, task)


@dataclass(frozen=True)
class TooLarge:
    """A task that no GPU has memory for."""

    def run(self, worker: Any, inputs: Any) -> tuple[Any, list[Any]]:
        raise GpuMemoryError(TORCHS_WORDS)


class Told(Watch):
    def __init__(self) -> None:
        super().__init__()
        self.plans: list[str] = []

    def placed(self, plan: str) -> None:
        self.plans.append(plan)


def test_torchs_error_is_told_apart_from_a_clients() -> None:
    class Full:
        def run(self, worker: Any, inputs: Any) -> Any:
            raise torch.OutOfMemoryError(TORCHS_WORDS)

    with pytest.raises(GpuMemoryError) as found:
        run_task(Full(), SimpleNamespace(own_code=False), ())  # type: ignore[arg-type]
    assert str(found.value) == "CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.usefixtures("ray_session")
def test_what_does_not_fit_by_itself_is_an_error() -> None:
    config = with_engine()
    pool = RayPool(config, SimpleNamespace(clients=8), Placement(2, 1.0, 0.0), starter=LightStarter(config.engine))
    notes: list[str] = []
    jobs = [Job(TooLarge(), (), label=f"job {number}") for number in range(4)]
    try:
        with pytest.raises(RaysimError, match=r"job \d: the GPU's memory is not enough, .* --training.batch_size"):
            list(pool.run(jobs, notes.append))
    finally:
        pool.close()
    (note,) = notes  # of the time when there were two
    assert "from here on 1 client actor," in note


@pytest.mark.usefixtures("ray_session")
def test_fewer_client_tasks_at_a_time_and_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = LOGISTIC | {"method.name": f"{__name__}:Crowded", "workload.clients": 8, "engine.cpus_per_client": 0.5}

    def run(name: str, **options: Any) -> Told:
        made, told = small_run(tmp_path / name, base, **options), Told()
        outcome = execute(made, prepare(made), told)
        assert outcome.status == "finished", outcome.message
        return told

    signs = tmp_path / "signs"
    signs.mkdir()
    monkeypatch.setattr(Crowded, "folder", str(signs))
    monkeypatch.setattr(Crowded, "most", 2)
    told = run("crowded", engine__backend="ray", engine__actors=4)
    assert len(told.faults) == 1 and "round 2" in told.faults[0] and "CUDA out of memory" in told.faults[0]
    assert "from here on 2 client actors" in told.faults[0] and "2 client actors" in told.plans[-1]
    counts = read(tmp_path / "crowded")["counts"]
    assert counts["requeued"] > 0 and counts["failed"] == 0 and counts["done"] == 24
    monkeypatch.setattr(Crowded, "most", 0)
    assert run("undisturbed").faults == []
    assert fingerprint(tmp_path / "crowded") == fingerprint(tmp_path / "undisturbed")
