"""FedAvg, FedProx, Local and Centralized on a model of one weight, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from raysim.method import GlobalModel, Message, Updates
from raysim.methods.centralized import Centralized
from raysim.methods.fedavg import FedAvg
from raysim.methods.fedprox import FedProx
from raysim.methods.fedsage import FedSage
from raysim.methods.fgssl import FGSSL
from raysim.methods.local import Local
from tests.raysim.methods.by_hand import context, linear, one_sample, sigmoid, updates


def test_fedavg_client_by_hand() -> None:
    # Logits (w0, w1) = (0, 0), label 0: gradient (p0 - 1, p1) = (-1/2, 1/2), lr 1/2: w = (1/4, -1/4).
    # Step 2: p0 = sigmoid(1/2): w0 = 1/4 + (1 - sigmoid(1/2))/2.
    task, data = one_sample(epochs=2)
    update, kept = FedAvg().train(linear(FedAvg()), data, Message(np.zeros(2, np.float32)), None, task)
    expected = 0.25 + (1 - sigmoid(0.5)) / 2
    assert update.delta == pytest.approx([expected, -expected], abs=1e-6)
    assert kept is None
    assert update.metrics["steps"] == 2


def test_fedprox_pulls_back_from_the_second_step_on() -> None:
    # The first step starts at θ, so the term is 0 there; in the second it adds μ (w - θ) = 2·(1/4, -1/4):
    # w0 = 1/4 - 1/2·(-(1 - sigmoid(1/2)) + 1/2). A term that vanished after the first batch would give FedAvg's value.
    task, data = one_sample(epochs=2)
    method = FedProx(mu=2.0)
    update, _ = method.train(linear(method), data, Message(np.zeros(2, np.float32)), None, task)
    expected = 0.25 - 0.5 * (-(1 - sigmoid(0.5)) + 0.5)
    assert update.delta == pytest.approx([expected, -expected], abs=1e-6)
    # (μ/2)‖w - θ‖² = 1 · 2 · expected².
    assert update.metrics["proximal"] == pytest.approx(2 * expected**2, abs=1e-6)


@pytest.mark.parametrize(
    ("method", "terms"), [("fedld", ["margin_weight"]), ("fedprox", ["mu"]), ("fgssl", ["contrast", "structure"])]
)
def test_without_its_terms_it_is_fedavg_and_with_one_it_is_not(
    make_local_training: Callable[..., Any], method: str, terms: list[str]
) -> None:
    def delta(name: str, *off: str) -> Any:
        options = {f"method__{term}": 0.0 for term in off}
        return make_local_training(method__name=name, workload__name="digits", **options).delta()

    plain = delta("fedavg")
    assert np.array_equal(delta(method, *terms), plain)
    for on in terms:
        assert not np.array_equal(delta(method, *(term for term in terms if term != on)), plain)


@pytest.mark.parametrize("method", [FedAvg(), FedProx(), Centralized(), FGSSL(), FedSage()])
def test_the_server_takes_the_mean_by_samples(method: GlobalModel) -> None:
    # Samples 1, 2, 5: (1·4 + 2·(-8) + 5·2)/8 = -1/4 and (1·0 + 2·4 + 5·(-4))/8 = -3/2.
    found = method.aggregate(np.array([1, 1], np.float32), updates([[4, 0], [-8, 4], [2, -4]], [1, 2, 5]), context())
    assert found.tolist() == [0.75, -0.5]


def test_the_total_gives_the_same_mean() -> None:
    whole = updates([[4, 0], [-8, 4], [2, -4]], [1, 2, 5])
    blocks = Updates(whole.clients, whole.samples, whole.each, np.array([4 - 16 + 10, 8 - 20], np.float32))
    assert blocks.mean().tolist() == whole.mean().tolist() == [-0.25, -1.5]
    with pytest.raises(RuntimeError, match="only mean"):
        _ = blocks.deltas


def test_local_keeps_its_model_and_sends_nothing() -> None:
    task, data = one_sample(epochs=2)
    method = Local()
    model = linear(method)
    assert method.init_client(model).tolist() == [0, 0]
    # From what the client kept, (1, -1), and not from the model's first values: twice w0 += (1 - sigmoid(2 w0)) / 2.
    update, after = method.train(model, data, method.message(None, 0), np.array([1, -1], np.float32), task)
    assert update.delta.size == 0
    first = 1 + (1 - sigmoid(2.0)) / 2
    expected = first + (1 - sigmoid(2 * first)) / 2
    assert after == pytest.approx([expected, -expected], abs=1e-6)
    model.reset()
    method.deploy(model, method.message(None, 0), after)
    assert np.array_equal(model.take_private(), after)
