from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from raysim.aggregators.principal_gradients import authors_coefficients, principal_coefficients
from raysim.flat_model import FlatModel
from raysim.methods.fedavg import FedAvg
from raysim.methods.fedld import FedLD, Server, margin_control
from raysim.workloads.federated_data import Batch
from raysim.workloads.objective import Margin
from tests.raysim.methods.by_hand import context, updates

DELTAS = np.array([[3, 1, 0, 1, 7], [2, -1, 1, 0, 8], [-1, 0.5, 2, 1, 9]], np.float32)
SAMPLES = [1, 2, 5]


def test_parameters_are_projected_and_buffers_averaged_by_samples() -> None:
    method = FedLD(server_learning_rate=0.5)
    told = context(4)
    start = np.arange(5, dtype=np.float32)
    server = method.aggregate(Server(start, np.array([0, 4])), updates(DELTAS, SAMPLES), told)
    gradients = -DELTAS[:, :4].astype(np.float64)
    coefficients = principal_coefficients(gradients @ gradients.T)
    np.testing.assert_allclose(server.parameters[:4], start[:4] - 0.5 * (coefficients @ gradients), rtol=1e-6)
    assert server.parameters[4] == pytest.approx(4 + (7 * 1 + 8 * 2 + 9 * 5) / 8)  # the whole mean, not half of it
    np.testing.assert_allclose(told.report.client_columns["weight"], coefficients, rtol=1e-12)
    assert told.report.round_columns["principal_axes"] == 2.0


def test_layers_are_the_parameter_tensors() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1, bias=False))
    model = FlatModel(module, FedLD().shared_names(module))
    assert FedLD(granularity="layer").init_server(model).boundaries.tolist() == [0, 6, 9, 12, 15, 18]
    assert FedLD(granularity="authors").init_server(model).boundaries.tolist() == [0, 6, 9, 12, 15, 18, 21, 24]
    assert FedLD().init_server(model).boundaries.tolist() == [0, 18]
    assert len(FedLD().init_server(model).parameters) == 24  # with running mean and variance


def test_granularity_layer_projects_each_tensor_alone() -> None:
    method, start = FedLD(granularity="layer", conflict="drop"), Server(np.zeros(5, np.float32), np.array([0, 3, 4]))
    server = method.aggregate(start, updates(DELTAS, SAMPLES), context(4))
    for piece in (slice(0, 3), slice(3, 4)):
        rows = DELTAS[:, piece].astype(np.float64)
        expected = principal_coefficients(rows @ rows.T, 0.8, "drop") @ rows
        np.testing.assert_allclose(server.parameters[piece], expected, rtol=1e-6)


def test_the_authors_rule_takes_statistics_too_after_a_first_plain_round() -> None:
    method = FedLD(granularity="authors", client_weights="samples")
    start, pieces, shares = np.zeros(5, np.float32), np.array([0, 3, 4, 5]), np.array(SAMPLES) / 8
    first = method.aggregate(Server(start, pieces), updates(DELTAS, SAMPLES), context(4))
    np.testing.assert_allclose(first.parameters, shares @ DELTAS, rtol=1e-6)
    second = method.aggregate(Server(start, pieces), updates(DELTAS, SAMPLES), context(4, round=2))
    for piece in (slice(0, 3), slice(3, 4), slice(4, 5)):
        rows = DELTAS[:, piece].astype(np.float64)
        expected = authors_coefficients(rows @ rows.T, 0.8, "keep", shares) @ rows
        np.testing.assert_allclose(second.parameters[piece], expected, rtol=1e-6)
    # One entry has one axis, on which everybody keeps its length: the plain mean.
    np.testing.assert_allclose(second.parameters[4], shares @ DELTAS[:, 4], rtol=1e-6)


def test_weights_by_samples_in_the_mean_of_projected_gradients() -> None:
    start = np.zeros(5, np.float32)
    server = FedLD(client_weights="samples").aggregate(
        Server(start, np.array([0, 4])), updates(DELTAS, SAMPLES), context(4)
    )
    rows = DELTAS[:, :4].astype(np.float64)
    expected = principal_coefficients(rows @ rows.T, 0.8, "keep", np.array(SAMPLES) / 8) @ rows
    np.testing.assert_allclose(server.parameters[:4], expected, rtol=1e-6)


def test_what_a_round_reports_by_hand() -> None:
    # Two orthogonal updates of lengths 1 and 2, equally long axes kept (K = 1: the longer): λ / Σλ = 4/5 and 1/5, and
    # all of the step is the second client's, which has more samples.
    told = context()
    FedLD().aggregate(Server(np.zeros(2, np.float32), np.array([0, 2])), updates([[1, 0], [0, 2]], [3, 5]), told)
    assert told.report.round_columns == pytest.approx(
        {
            "principal_axes": 1.0,
            "mean_cosine": 0.0,
            "largest_eigenvalue_share": 0.8,
            "smallest_eigenvalue_share": 0.2,
            "smallest_client_step_share": 0.0,
        }
    )
    assert told.report.client_columns["step_share"].tolist() == [0.0, 1.0]


def test_without_principal_gradients_the_step_is_fedavgs_bit_for_bit() -> None:
    method = FedLD(principal=False)
    assert FedLD(principal=False, margin_weight=0.0).traits == replace(FedAvg.traits, plain_training=False)
    start = np.random.default_rng(0).standard_normal(5).astype(np.float32)
    found = method.aggregate(Server(start, np.array([0, 4])), updates(DELTAS, SAMPLES), context(4))
    plain = FedAvg().aggregate(start, updates(DELTAS, SAMPLES), context(4))
    assert np.array_equal(found.parameters, plain)
    projected = FedLD().aggregate(Server(start, np.array([0, 4])), updates(DELTAS, SAMPLES), context(4))
    assert not np.allclose(projected.parameters, plain)


@pytest.mark.parametrize("margin", ["l2", "log", "softmax_log"])
def test_margin_terms_by_hand(margin: Margin) -> None:
    logits = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    batch = Batch(x=logits, y=torch.tensor([0, 1]))
    z = logits.double().numpy()
    exponentials = np.exp(z)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    term = {
        "l2": (25 + 1) / 2,
        "log": (np.log(26) + np.log(2)) / 2,
        "softmax_log": np.log(1 + (probabilities**2).sum()),
    }[margin]
    expected = -np.log(probabilities[[0, 1], [0, 1]]).mean() + 0.1 * term
    assert float(margin_control(margin, 0.1)(nn.Identity(), batch)) == pytest.approx(expected, rel=1e-6)
