"""Clients that take a single step, merged: the sums and losses of single client tasks, and whom it is never done to."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.client_side import fedsgd
from raysim.client_side.worker import Worker
from raysim.config.run_config import build
from raysim.errors import RaysimError
from raysim.exchange.payload import Failure
from raysim.flat_model import FlatModel
from raysim.method import ClientTask, Update
from raysim.results.result import comparable
from raysim.workloads.federated_data import Batch, ChangedSamples
from raysim.workloads.models.mlp_cnn import multilayer_perceptron
from tests.fingerprint import fingerprint
from tests.raysim.client_side.single_steps import SINGLE_STEPS, SharesHead, added, block, counted
from tests.small_runs import MakeConfig, worker_of
from tests.watch import stopped


@pytest.fixture
def base() -> dict[str, object]:
    return SINGLE_STEPS


CASES: dict[str, dict[str, Any]] = {
    "mlp": {},
    "decay and momentum": {"training__weight_decay": 0.3, "training__momentum": 0.9},
    "cnn": {"model__name": "cnn", "training__batch_size": 60},
    "the first batch of more": {"training__steps_per_epoch": 1, "training__batch_size": 4},
    "several steps": {"training__steps_per_epoch": 3},
    "bfloat16": {"training__precision": "bf16"},
    "part of the model": {"method__name": f"{SharesHead.__module__}:SharesHead"},
    "a term that is 0 at the start": {"method__name": "fedprox", "method__mu": 5.0},
}


@pytest.mark.parametrize("case", CASES)
def test_a_group_gives_the_sum_and_the_losses_of_single_client_tasks(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    worker = worker_of(make_config("run", **CASES[case]))
    clients = range(8, 21)
    samples = [worker.federation.samples(client) for client in clients]
    assert len(set(samples)) > 5
    alone = block(worker, clients, 1)
    seen = counted(monkeypatch)
    found = block(worker, clients, 4)
    assert seen == ([] if case == "several steps" else [4, 4, 4])  # and one that is alone
    assert [positions for _, positions in found.sums] == [positions for _, positions in alone.sums] == [8, 4, 1]
    one, other = added(found.sums), added(alone.sums)
    tolerance = 0.03 if case == "bfloat16" else 1e-5
    assert np.abs(one - other).max() <= tolerance * np.abs(other).max() > 0
    for update, expected in zip(found.updates, alone.updates, strict=True):
        assert isinstance(update, Update) and isinstance(expected, Update)
        for name in ("steps", "train_loss"):
            assert update.metrics[name] == pytest.approx(expected.metrics[name], rel=tolerance)
    assert len(found.seconds) == len(clients) and min(found.seconds) > 0


def test_by_hand() -> None:
    """θ = 0, two classes of three: the gradient of a sample of class c is (softmax − e_c) x, with softmax (1/3, …)."""
    model = FlatModel(multilayer_perceptron((2,), (), 3), {"head.weight", "head.bias"})
    model.buffer.zero_()
    batches = [
        Batch(torch.tensor([[3.0, 0.0]]), torch.tensor([0])),
        Batch(torch.tensor([[0.0, 6.0], [0.0, 3.0]]), torch.tensor([2, 2])),
    ]
    task = ClientTask(0, 1, 0, 1, 0.5, build([{"method.name": "fedavg"}]).training)
    total, losses = fedsgd._sum_and_losses(model, batches, task, [1, 4])  # the second is two of four samples
    assert losses == pytest.approx([np.log(3)] * 2)
    weight = np.array([[2.0, -6.0], [-1.0, -6.0], [-1.0, 12.0]])  # (−2, 1, 1)·(1, 0) and 4 · mean of (1, 1, −2)·x/3
    bias = np.array([2 / 3 - 4 / 3, -1 / 3 - 4 / 3, -1 / 3 + 8 / 3])
    np.testing.assert_allclose(total, 0.5 * np.concatenate([weight.ravel(), bias]), rtol=1e-6)


def test_a_client_that_takes_more_steps_makes_its_group_client_task_one_by_one(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = worker_of(make_config("run", training__batch_size=25))
    clients = range(8, 24)
    many = [start for start in range(8, 24, 4) if max(map(worker.federation.samples, range(start, start + 4))) > 26]
    assert 0 < len(many) < 4
    seen = counted(monkeypatch)
    found, alone = block(worker, clients, 4), block(worker, clients, 1)
    assert len(seen) == 4 - len(many)
    steps = [update.metrics["steps"] for update in found.updates if isinstance(update, Update)]
    assert steps == [update.metrics["steps"] for update in alone.updates if isinstance(update, Update)]
    assert max(steps) > 1
    np.testing.assert_allclose(added(found.sums), added(alone.sums), rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", ["fedavg", "fedprox"])
def test_any_calls_give_the_same(make_config: MakeConfig, method: str) -> None:
    make_config = functools.partial(make_config, method__name=method)
    found = [raysim.run(make_config(f"size-{size}", engine__block_size=size)) for size in (0, 4, 64)]
    for result in found[1:]:
        assert comparable(result.rounds).to_csv() == comparable(found[0].rounds).to_csv()
        assert comparable(result.clients).to_csv() == comparable(found[0].clients).to_csv()
    apart = raysim.run(make_config("apart", engine__merge_single_steps=False))
    columns = ["loss", "train_loss"]
    assert not np.array_equal(apart.rounds[columns], found[0].rounds[columns])  # another program
    np.testing.assert_allclose(apart.rounds[columns], found[0].rounds[columns], rtol=1e-5)


def test_a_call_that_is_done_again_gives_the_same_bits(make_config: MakeConfig) -> None:
    """Whatever the worker did in between, as after the death of another actor."""
    worker = worker_of(make_config("run"))
    first = block(worker, range(8, 21), 4)
    block(worker, range(40, 50), 1)
    again = block(worker, range(8, 21), 4)
    for (one, _), (other, _) in zip(first.sums, again.sums, strict=True):
        assert one is not None and other is not None and one.tobytes() == other.tobytes()
    assert first.updates == again.updates


def test_stopped_and_resumed_gives_the_same_bits(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fingerprint(raysim.run(make_config("undisturbed", schedule__rounds=3)).folder)
    seen = counted(monkeypatch)
    config = make_config("stopped", schedule__rounds=3)
    assert fingerprint(raysim.run(config, resume=stopped(config, rounds=1)).folder) == expected
    assert 3 * 16 <= len(seen) - 2 < 4 * 17  # a step is tried before each of the two parts


@pytest.mark.parametrize("merged", [True, False])
def test_want_of_memory_ends_the_run_and_skips_no_client(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    """Which clients are in the result would hang on the machine."""
    original = Worker.data

    def data(self: Worker, client: int) -> Any:
        if client == 5:
            bytearray(1 << 52)
        return original(self, client)

    monkeypatch.setattr(Worker, "data", data)
    config = make_config("run", engine__on_client_error="skip", engine__merge_single_steps=merged)
    with pytest.raises(RaysimError, match=r"^round 1, clients .*\]: \S+ has no main memory left"):
        raysim.run(config)


@pytest.mark.parametrize("error", ["fail", "skip"])
def test_a_client_that_fails_is_found_among_its_group(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    original = Worker.data

    def data(self: Worker, client: int) -> Any:
        found = original(self, client)
        bad = ChangedSamples(found.train, lambda batch: replace(batch, x=batch.x + float("inf")))
        return replace(found, train=bad) if client == 5 else found

    monkeypatch.setattr(Worker, "data", data)
    config = make_config(error, engine__on_client_error=error, schedule__rounds=1, evaluation__every=1)
    if error == "fail":
        with pytest.raises(RaysimError, match="client 5, round 1, stage update"):
            raysim.run(config)
        return
    result = raysim.run(config)
    assert int(result.rounds["participants"].iloc[-1]) == 65
    assert 5 not in result.clients["client"].tolist() and 4 in result.clients["client"].tolist()
    columns = ["loss", "train_loss"]
    cut = raysim.run(replace(config, engine=replace(config.engine, block_size=4), output=f"{config.output}-cut"))
    assert cut.rounds[columns].equals(result.rounds[columns])
    alone = replace(config, engine=replace(config.engine, merge_single_steps=False), output=f"{config.output}-alone")
    np.testing.assert_allclose(raysim.run(alone).rounds[columns], result.rounds[columns], rtol=1e-5)


def test_what_raises_only_once_does_not_pass_unseen(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_of(make_config("run"))
    original, raised = Worker.data, list[int]()

    def data(self: Worker, client: int) -> Any:
        if client == 10 and not raised:
            raised.append(client)
            raise OSError("for once")
        return original(self, client)

    monkeypatch.setattr(Worker, "data", data)
    found = block(worker, range(8, 16), 4)
    (failure,) = (update for update in found.updates if isinstance(update, Failure))
    assert (failure.client, failure.stage) == (10, "data")
    assert (
        failure.reason.startswith("OSError: for once; not so by itself")
        and "merge_single_steps false" in failure.reason
    )
    assert len(found.updates) == 8 and [positions for _, positions in found.sums] == [8]


def test_a_start_that_does_not_fit_is_a_failure_of_every_client_task(make_config: MakeConfig) -> None:
    worker = worker_of(make_config("run"))
    found = block(worker, range(8, 12), 4, start=np.zeros(3, np.float32))
    failures = [update for update in found.updates if isinstance(update, Failure)]
    assert [(failure.client, failure.stage) for failure in failures] == [(client, "train") for client in range(8, 12)]


def test_marks_name_what_is_loaded_and_trained(make_config: MakeConfig) -> None:
    worker = worker_of(make_config("run", engine__profile=True))
    found = block(worker, range(8, 12), 4)
    expected = [*(("load", client) for client in range(8, 12)), ("train", None)]
    assert [(mark.phase, mark.client) for mark in found.marks] == expected
