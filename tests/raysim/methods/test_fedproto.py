"""FedProto against plain loops over its equations, which share no code with it."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.engine.load_federation import load_federation
from raysim.errors import ConfigError
from raysim.flat_model import FlatModel
from raysim.methods.fedproto import FedProto, Prototypes
from raysim.workloads.federated_data import Batch
from raysim.workloads.metrics import evaluate
from raysim.workloads.parallel_map import Sequential
from tests.raysim.methods.softmax_by_hand import COHORTS, DATA, start
from tests.raysim.methods.two_layers import EPOCHS, RATE, START, Matrix, gradient, two_rounds
from tests.state_equality import equal


def steps(model: Matrix, prototypes: dict[int, Matrix], pull: float, client: int) -> Matrix:
    """Body and head [2, 2, 2] after a client's steps."""
    for x, label in DATA[client] * EPOCHS:
        slope = gradient(model, (x, label))
        if label in prototypes:  # λ / 2 · ‖B x − c‖², the mean over two features
            slope[0] += pull * np.outer(model[0] @ np.array(x) - prototypes[label], x)
        model = model - RATE * slope
    return model


@pytest.mark.parametrize("pull", [0.0, 0.6])
def test_two_rounds_of_two_clients_out_of_three(pull: float) -> None:
    prototypes: dict[int, Matrix] = {}
    models = dict.fromkeys(DATA, START)
    for cohort in COHORTS:
        models |= {i: steps(models[i], prototypes, pull, i) for i in cohort}
        features = [(models[i][0] @ np.array(x), label) for i in cohort for x, label in DATA[i]]
        for label in (0, 1):
            prototypes[label] = np.mean([found for found, known in features if known == label], axis=0)
    assert all((each > 0).any() and (each < 0).any() for each in models.values())
    server, states, _ = two_rounds(FedProto(pull=pull, predict="head"))
    of_prototypes = two_rounds(FedProto(pull=pull))  # what clients are judged by changes nothing of what they train
    assert equal(of_prototypes[0], server)
    for alone, state in zip(of_prototypes[1], states, strict=True):
        np.testing.assert_array_equal(alone[: state.size], state)
    np.testing.assert_allclose(server.centroids, [prototypes[0], prototypes[1]], rtol=1e-5, atol=1e-6)
    assert server.centroid_samples.tolist() == [3, 2]  # of clients 1 and 2
    for state, expected in zip(states, models.values(), strict=True):
        np.testing.assert_allclose(state.reshape(2, 2, 2), expected, rtol=1e-5, atol=1e-6)


SERVER = Prototypes(np.array([[1, 0], [0, 2], [5, 5]], np.float32), np.array([3, 2, 0]))
"""Prototypes of two of three classes."""


def judged(method: FedProto, server: Prototypes, x: Matrix) -> tuple[Matrix, FlatModel]:
    """Logits [B, 3] of the model that a client is judged by, whose body adds (1, −1) to x and whose head favors 2."""
    plain = torch.nn.Sequential(OrderedDict(body=torch.nn.Linear(2, 2), head=torch.nn.Linear(2, 3)))
    with torch.no_grad():
        for parameter, values in zip(plain.parameters(), ([[1, 0], [0, 1]], [1, -1], 0, [0, 0, 7]), strict=True):
            parameter.copy_(torch.tensor(values, dtype=torch.float32))
    model = FlatModel(method.extend(plain), set())
    method.deploy(model, method.message(server, 0), method.init_client(model))
    with torch.inference_mode():
        return model.module.eval()(torch.tensor(x, dtype=torch.float32)).numpy(), model


def test_a_client_is_judged_by_the_nearest_prototype_of_a_class_that_has_one() -> None:
    x = np.array([[0.0, 1.0], [-2.0, 2.0], [4.0, 6.0]])  # features (1, 0), (−1, 1) and (5, 5)
    logits, model = judged(FedProto(), SERVER, x)
    np.testing.assert_allclose(logits, [[0, -5, -np.inf], [-5, -2, -np.inf], [-41, -34, -np.inf]])
    assert logits.argmax(axis=1).tolist() == [0, 1, 1]  # features of the last are (5, 5), which no class has sent
    sums = evaluate(model.module, [Batch(torch.tensor(x[:2]).float(), torch.tensor([0, 0]))], 3, scores=True)
    assert sums.accuracy == 0.5
    # −log softmax of −‖h − C̄‖²: log(1 + e^−5) and log(1 + e^3)
    assert sums.loss == pytest.approx((np.log1p(np.exp(-5)) + np.log1p(np.exp(3))) / 2, rel=1e-6)
    assert sums.scores is not None and sums.scores[0] == pytest.approx([1 / (1 + np.exp(-5)), 1 / (1 + np.exp(5)), 0])


@pytest.mark.parametrize(
    ("method", "server"), [(FedProto(predict="head"), SERVER), (FedProto(), FedProto().init_server(start()))]
)
def test_the_head_predicts_where_it_is_asked_for_and_where_there_is_no_prototype(
    method: FedProto, server: Prototypes
) -> None:
    logits, _ = judged(method, server, np.array([[0.0, 1.0]]))
    assert logits.tolist() == [[0.0, 0.0, 7.0]]


def test_a_head_that_does_not_tell_the_width_of_features_is_refused() -> None:
    module = torch.nn.Sequential(OrderedDict(body=torch.nn.Linear(2, 2), head=torch.nn.Sequential()))
    assert FedProto(predict="head").extend(module) is module
    with pytest.raises(ConfigError, match=r"a body and a linear head .*, not Sequential. Set method.predict to head"):
        FedProto().extend(module)


def test_a_run_judges_its_clients_by_prototypes_and_gives_back_the_judged_model(tmp_path: Path) -> None:
    """The accuracy in the table is that of argmin ‖h − C̄‖ computed here, for the model that the run gives back."""
    options: dict[str, Any] = {
        "workload": "digits",
        "clients": 3,
        "rounds": 2,
        "engine.backend": "inline",
        "pictures": False,
    }
    found = {}
    for predict in ("prototypes", "head"):
        result = raysim.run("fedproto", predict=predict, output=str(tmp_path / predict), **options)
        right = list[float]()
        assert result.settings is not None
        federation = load_federation(result.settings, Sequential())
        for client in range(3):
            module: Any = result.client_model(client)
            for batch in federation.client(client, "cpu").test.batches(10_000):
                features = module.body(batch.x).detach()
                scores = module.head(features) if predict == "head" else -torch.cdist(features, module.prototypes)
                right.append(float((scores.argmax(dim=1) == batch.y).float().mean()))
        found[predict] = np.mean(right)
        assert result.rounds["accuracy"].iloc[-1] == pytest.approx(found[predict], abs=1e-6)
    assert found["prototypes"] != found["head"]


def test_only_prototypes_travel() -> None:
    method = FedProto()
    server, _, model = two_rounds(method)
    assert model.shared.numel() == 0 and method.message(server, 0).parameters.size == 0
    assert method.message(server, 0).nbytes == 2 * 2 * 4 + 2 * 8
