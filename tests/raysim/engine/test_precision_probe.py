"""bfloat16 training, and the choice between the two number formats."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.config import registry
from raysim.config.run_config import RunConfig, build
from raysim.config.sections import Training
from raysim.engine.precision_probe import TimeSteps, resolve
from raysim.exchange.pool_protocol import Done, Job, Seat
from raysim.flat_model import FlatModel, all_names
from raysim.method import ClientTask
from raysim.training.local_sgd import train_epochs
from raysim.workloads.models.mlp_cnn import mcmahan_cnn
from tests.made_subgraphs import NODE_METHODS, node_options
from tests.small_runs import small_run, worker_of


class FakePool:
    """Answers every job with the given seconds."""

    slots = 1

    def __init__(self, float32: float, bf16: float) -> None:
        self.jobs = 0
        self._seconds = {"float32": float32, "bf16": bf16}

    def run(self, jobs: Sequence[Job], note: Any) -> Generator[Done, None, None]:
        for index, job in enumerate(jobs):
            assert isinstance(job.task, TimeSteps)
            self.jobs += 1
            yield Done(index, self._seconds, (), 0.0, 0.0, 0.0, Seat(0, "here", 1, "cpu"))


def config(tmp_path: Path, **layer: Any) -> RunConfig:
    fixed = {"workload.clients": 3, "workload.limit": 240, "schedule.rounds": 1, "schedule.local_epochs": 1}
    return small_run(tmp_path / "run", fixed, **({"method__name": None} | layer))


def test_training_in_bfloat16_is_coarse_and_keeps_float32_parameters(tmp_path: Path) -> None:
    worker = worker_of(config(tmp_path))
    trained = {}
    for precision in ("float32", "bf16"):
        torch.manual_seed(0)
        module = mcmahan_cnn((1, 8, 8), 10)
        model = FlatModel(module, all_names(module))
        before = model.take_shared()
        settings = Training(batch_size=16, precision=precision)
        result = train_epochs(model, worker.data(0).train, ClientTask(0, 1, 0, 1, 0.05, settings))
        assert model.buffer.dtype == torch.float32 and np.isfinite(result.loss)
        trained[precision] = model.change_from(before)
    difference = np.linalg.norm(trained["bf16"] - trained["float32"]) / np.linalg.norm(trained["float32"])
    assert 1e-5 < difference < 0.1


@pytest.mark.parametrize(("bf16", "chosen"), [(0.5, "bf16"), (0.97, "float32"), (2.0, "float32")])
def test_auto_takes_bfloat16_only_where_it_is_clearly_faster(tmp_path: Path, bf16: float, chosen: str) -> None:
    notes: list[str] = []
    pool = FakePool(1.0, bf16)
    asked = config(tmp_path, training__precision="auto")
    assert resolve(asked, pool, tmp_path, notes.append).training.precision == chosen  # type: ignore[arg-type]
    assert notes == [f"trains in {chosen} (milliseconds a step: float32 1000.0, bf16 {1000 * bf16})"]
    # A resumed run goes by the record, however fast either is now.
    other = FakePool(bf16, 1.0)
    assert resolve(asked, other, tmp_path, notes.append).training.precision == chosen  # type: ignore[arg-type]
    assert (pool.jobs, other.jobs) == (1, 0)


def test_what_is_asked_for_is_not_timed(tmp_path: Path) -> None:
    asked = config(tmp_path, training__precision="bf16")
    assert resolve(asked, FakePool(1, 1), tmp_path, print) is asked  # type: ignore[arg-type]
    assert not (tmp_path / "precision.json").exists()


def test_clients_of_one_sample_are_timed_too(tmp_path: Path) -> None:
    one = {"workload__limit": 3, "workload__partition": "iid", "workload__min_samples": 1, "model__name": "logistic"}
    worker = worker_of(config(tmp_path, **one))
    assert [worker.federation.samples(client) for client in range(3)] == [1, 1, 1]
    seconds, _ = TimeSteps(4).run(worker, ())
    assert seconds["float32"] > 0 and seconds["bf16"] > 0


def test_an_automatic_run_trains_as_the_chosen_one(tmp_path: Path) -> None:
    raysim.run(config(tmp_path, training__precision="auto", model__name="logistic"))
    record = json.loads((tmp_path / "run" / "precision.json").read_text())
    assert min(record["milliseconds_a_step"].values()) > 0
    same = config(tmp_path, training__precision=record["precision"], model__name="logistic", output=str(tmp_path / "b"))
    raysim.run(same)
    results = [raysim.results.result.load_result(tmp_path / name) for name in ("run", "b")]
    losses = [result.rounds["train_loss"].tolist() for result in results]
    assert losses[0] == losses[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(registry.known("method")))
def test_every_method_trains_in_bfloat16(name: str) -> None:
    graph = {path: value for path, value in node_options(".").items() if value is not None}
    own = graph if name in NODE_METHODS else {}
    chosen = build([{"method.name": name, "training.precision": "bf16", "workload.clients": 2, **own}])
    worker = worker_of(chosen)
    method = chosen.method
    server = method.init_server(worker.model(0))
    task = ClientTask(0, 1, 0, 1, 0.05, chosen.training, worker.federation.input_spec(0).classes)
    update, _ = worker.train(task, method.message(server, 0), worker.first_state(0))
    assert np.isfinite(update.delta).all() and np.isfinite(update.metrics["train_loss"])
