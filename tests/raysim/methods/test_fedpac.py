from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from raysim.aggregators.classifier_combination import combination_weights
from raysim.client_side.model_parts import check_parts
from raysim.config.run_config import default_config
from raysim.errors import ConfigError
from raysim.flat_model import FlatModel
from raysim.method import Message, Update, Updates
from raysim.methods._class_centroids import centroid_loss, feature_sums
from raysim.methods.fedpac import FedPAC
from raysim.workloads.federated_data import Batch
from raysim.workloads.models.classifier import Classifier
from tests.raysim.methods.by_hand import context


def classifier() -> FlatModel:
    module = Classifier(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.Linear(2, 3))
    return FlatModel(module, FedPAC().shared_names(module))


def update_of(head: list[float], counts: list[int], sums: list[list[float]], variance: float, delta: float) -> Update:
    samples = sum(counts)
    extra = {
        "head": np.array(head, np.float32),
        "weighted_means": (np.array(sums) / samples).astype(np.float32),
        "class_sums": np.array(sums, np.float32),
        "class_samples": np.array(counts),
    }
    return Update(np.full(2, delta, np.float32), {"head_variance": variance}, extra)


def test_the_head_stays_and_the_body_is_shared() -> None:
    model = classifier()
    assert {entry.name for entry in model.entries if not entry.shared} == {"head.weight", "head.bias"}
    assert model.take_private().size == 9
    for names, missing in ((["head.weight"], "body"), (["body.0.weight"], "head")):
        with pytest.raises(ConfigError, match=rf"fedpac needs a model with parameters named {missing}\.\*"):
            check_parts(default_config("fedpac"), names)


def test_aggregation_by_hand() -> None:
    blank = FedPAC().init_server(classifier())
    server = replace(blank, parameters=np.zeros(2, np.float32), heads={9: blank.mean_head})
    first = update_of([1, 0], [2, 2, 0], [[2, 0], [0, 4], [0, 0]], 1.0, 1.0)
    second = update_of([0, 1], [0, 4, 0], [[0, 0], [0, 2], [0, 0]], 3.0, 5.0)
    found = context()
    after = FedPAC().aggregate(server, Updates((3, 5), np.array([4, 4]), (first, second)), found)
    assert after.parameters.tolist() == [3, 3]
    # Samples of class 1: (0, 4) over 2 and (0, 2) over 4; class 2 has none, so it has no centroid.
    assert after.centroids.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert after.centroid_samples.tolist() == [2, 6, 0]
    means = np.stack([first.extra["weighted_means"], second.extra["weighted_means"]])
    weights = combination_weights(np.array([1.0, 3.0]), means)
    # |a_1 - a_2|² = ¼ + ¼ = ½, so P_1 = diag(1, 3½) and P_2 = diag(1½, 3): inverse variances.
    np.testing.assert_allclose(weights, [[7 / 9, 2 / 9], [2 / 3, 1 / 3]], rtol=1e-12)
    np.testing.assert_allclose([after.heads[3], after.heads[5]], weights, rtol=1e-6)
    np.testing.assert_allclose(found.report.client_columns["own_head_weight"], [7 / 9, 1 / 3])
    # Not sampled: its last head; new: the mean of those just trained.
    assert after.heads[9] is server.heads[9]
    assert FedPAC().message(after, 0).extra["head"].tolist() == [0.5, 0.5]
    # The next round has no sample of class 0: its centroid stays.
    third = update_of([1, 1], [0, 2, 2], [[0, 0], [8, 8], [6, 6]], 1.0, 0.0)
    later = FedPAC().aggregate(after, Updates((3,), np.array([4]), (third,)), context())
    assert later.centroids.tolist() == [[1, 0], [4, 4], [3, 3]]
    assert later.heads[3].tolist() == [1, 1] and np.array_equal(later.heads[5], after.heads[5])


def test_alignment_by_hand() -> None:
    model = classifier()
    batch = Batch(x=torch.tensor([[1.0, 2.0], [3.0, 5.0], [-1.0, 0.5]]), y=torch.tensor([0, 1, 2]))
    extra = {
        "centroids": np.array([[1, 1], [0, 2], [9, 9]], np.float32),
        "centroid_samples": np.array([4, 1, 0]),  # class 2 has no centroid: no term for the third sample
    }
    message = Message(np.zeros(0, np.float32), extra)
    model.module.eval()
    body, head = model.module.get_submodule("body"), model.module.get_submodule("head")
    features = body(batch.x).detach()
    plain = nn.functional.cross_entropy(head(features), batch.y)
    distances = [(features[i] - torch.tensor(extra["centroids"][i])).square().sum() for i in (0, 1)]
    expected = float(plain.detach() + 0.7 * sum(distances) / 3)
    assert centroid_loss(model, message, 0.7)(model.module, batch).item() == pytest.approx(expected, rel=1e-6)
    own = np.array([[7.0, 7.0], [7.0, 7.0], [1.0, -1.0]])  # FedPAC's: of it the third row takes the place of a centroid
    distances.append((features[2] - torch.tensor([1.0, -1.0])).square().sum())
    expected = float(plain.detach() + 0.7 * sum(distances) / 3)
    assert centroid_loss(model, message, 0.7, own=own)(model.module, batch).item() == pytest.approx(expected, rel=1e-6)
    first_round = Message(np.zeros(0, np.float32), extra | {"centroids": np.zeros((0, 0), np.float32)})
    assert centroid_loss(model, first_round, 0.7)(model.module, batch).item() == pytest.approx(float(plain.detach()))


def test_statistics_against_numpy(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="fedpac", method__head_epochs=0)
    model, data = local.worker.model(0), local.worker.data(0)
    message = local.first_message()
    batch = next(iter(data.train.batches(10_000)))
    with torch.no_grad():
        h, y = model.module.get_submodule("body")(batch.x).double().numpy(), batch.y.numpy()
    sums, counts, squares = feature_sums(model, data.train, local.task(0))
    assert counts.tolist() == np.bincount(y, minlength=10).tolist()
    for c in range(10):
        np.testing.assert_allclose(sums[c], h[y == c].sum(axis=0), rtol=1e-5, atol=1e-5)
    assert squares == pytest.approx((h**2).sum(), rel=1e-5)
    shares = counts / counts.sum()
    present = np.flatnonzero(counts)
    second = sum(shares[c] * np.trace(h[y == c].T @ h[y == c] / counts[c]) for c in present)
    first = sum(shares[c] ** 2 * np.sum(h[y == c].mean(axis=0) ** 2) for c in present)
    update, _ = local.train(0, message, local_epochs=0)
    assert update.metrics["head_variance"] == pytest.approx((second - first) / len(y), rel=1e-5)
    np.testing.assert_allclose(
        update.extra["weighted_means"][present],
        [shares[c] * h[y == c].mean(axis=0) for c in present],
        rtol=1e-4,
        atol=1e-6,
    )


def test_each_phase_moves_its_own_part(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(method__name="fedpac")
    method, message = local.method, local.first_message()
    head_only, _ = local.train(0, message, local_epochs=0)
    assert not head_only.delta.any()
    assert not np.array_equal(head_only.extra["head"], message.extra["head"])
    both, _ = local.train(0, message)
    assert both.delta.any() and np.array_equal(both.extra["head"], head_only.extra["head"])
    # The uploaded centroids are those of the body after training.
    model = local.worker.model(0)
    method.deploy(model, Message(message.parameters + both.delta, {"head": both.extra["head"]}), None)
    sums, _, _ = feature_sums(model, local.worker.data(0).train, local.task(0))
    np.testing.assert_allclose(both.extra["class_sums"], sums, rtol=1e-4, atol=1e-3)
    assert np.array_equal(model.take_private(), both.extra["head"])


def test_distance_mean_is_the_weight_divided_by_the_features(make_local_training: Callable[..., Any]) -> None:
    def delta(**options: Any) -> Any:
        local = make_local_training(method__name="fedpac", **options)
        start = local.method.init_server(local.worker.model(0))
        server = replace(start, centroids=np.ones((10, 64), np.float32), centroid_samples=np.ones(10, np.int64))
        return local.train(0, local.method.message(server, 0))[0].delta

    mean = delta(method__distance="mean", method__alignment=2.0)
    assert np.array_equal(mean, delta(method__distance="sum", method__alignment=2.0 / 64))
    assert not np.array_equal(mean, delta(method__distance="sum", method__alignment=2.0))


def test_statistics_that_stay_with_a_client_are_neither_sent_nor_mixed(make_local_training: Callable[..., Any]) -> None:
    local = make_local_training(
        method__name="fedpac",
        model__name="tests.raysim.user_code:WithBatchNorm",
        training__batchnorm_statistics="local",
        training__last_batch="merge",
    )
    worker, method, clients = local.worker, local.method, (0, 1, 2)
    server, size = method.init_server(worker.model(0)), 64 * 10 + 10
    assert server.mean_head.size == size
    updates, states = [], {}
    for client in clients:
        first = worker.first_state(client)
        update, states[client] = worker.train(local.task(client), method.message(server, client), first)
        assert update.extra["head"].size == size
        assert not np.array_equal(states[client].private[size:], first.private[size:])
        updates.append(update)
    samples = np.array([worker.federation.samples(client) for client in clients])
    server = method.aggregate(server, Updates(clients, samples, tuple(updates)), context())
    for client in clients:
        deployed = worker.deployed(client, method.message(server, client), states[client])
        assert np.array_equal(deployed.take_shared(), server.parameters)
        assert np.array_equal(deployed.take_private()[:size], server.heads[client])
        assert np.array_equal(deployed.take_private()[size:], states[client].private[size:])
    assert not np.array_equal(states[0].private[size:], states[1].private[size:])
