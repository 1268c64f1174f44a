"""Power of choice, by hand: the candidates with the highest losses with the current model, and what asking costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.running.simulation import run
from raysim.samplers._sampler import Known, Losses
from raysim.samplers.power_of_choice import PowerOfChoice
from raysim.workloads.metrics import evaluate
from tests.small_runs import LOGISTIC, small_run, worker_of

CHOICE: dict[str, Any] = LOGISTIC | {
    "schedule.sampling": "power-of-choice",
    "schedule.sampling_rate": 0.5,
    "workload.partition": "dirichlet",
    "workload.alpha": 0.3,
}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_highest_losses_of_the_candidates(bad: float) -> None:
    """All five are asked: 3 has the highest loss, 1 and 4 the same, of which the smaller number goes first."""
    asked = []

    def ask(clients: Any) -> Losses:
        asked.append(clients)
        return Losses(np.array([1.0, 2.0, bad, 5.0, 2.0])[clients], np.zeros(len(clients)))

    known = Known(1, range(5), 2, lambda clients: np.ones(len(clients), np.int64), ask)
    assert PowerOfChoice(0.4, 2.5).cohort(known, np.random.default_rng(0)).tolist() == [1, 3]
    assert asked == [[0, 1, 2, 3, 4]]
    PowerOfChoice(0.4, 1.0).cohort(known, np.random.default_rng(0))
    assert len(asked[1]) == 2  # as many candidates as places: sampling by size
    sizes = np.array([0, 7, 0, 0, 7])
    assert PowerOfChoice(0.4, 1.0).cohort(
        replace(known, samples=lambda clients: sizes[[*clients]]), np.random.default_rng(0)
    ).tolist() == [1, 4]


def losses(config: Any, model: Any) -> np.ndarray:
    federation = worker_of(config).federation
    train = [federation.client(client, "cpu").train for client in range(federation.clients)]
    return np.array([evaluate(model, samples.batches(500), 10).loss for samples in train])


def test_a_run_takes_those_with_the_highest_losses(tmp_path: Path) -> None:
    """Losses are those before rounds 1 and 2; four are asked, two train: six messages, four answers of 4 bytes."""
    config = small_run(tmp_path / "run", CHOICE, schedule__rounds=2)
    found = run(config)
    before = run(small_run(tmp_path / "before", CHOICE, schedule__rounds=1)).model
    for number, model in ((1, worker_of(config).model(0).module), (2, before)):
        cohort = found.clients.loc[found.clients["round"] == number, "client"].tolist()
        assert cohort == sorted(np.argsort(-losses(config, model))[:2].tolist())
    plain = run(small_run(tmp_path / "plain", CHOICE, schedule__sampling="fixed")).rounds
    message, update = plain["bytes_down"].iloc[0] / 2, plain["bytes_up"].iloc[0] / 2
    assert found.rounds["bytes_down"].tolist() == [6 * message] * 2
    assert found.rounds["bytes_up"].tolist() == [2 * update + 4 * 4] * 2


def test_asking_takes_virtual_time(tmp_path: Path) -> None:
    """A forward pass over all samples takes a third of an epoch, the model its bytes, and both ways a latency."""
    devices = {"devices__preset": "uniform", "devices__latency": 1.0, "devices__bandwidth_down": 0.01}
    config = small_run(tmp_path / "run", CHOICE, schedule__rounds=1, **devices, devices__seconds_per_sample=0.3)
    found = run(config)
    federation = worker_of(config).federation
    sizes = [federation.samples(client) for client in range(4)]
    trained = found.clients["samples"].max()
    sent = 4 * 650 / 1250  # a model of 650 numbers, at 1250 bytes a second
    asked, task = 2 + sent + 0.3 * max(sizes) / 3, 2 + sent + 0.3 * trained
    assert found.rounds["virtual_seconds"].iloc[0] == pytest.approx(asked + task, abs=0.05)
