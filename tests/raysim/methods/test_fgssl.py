from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from raysim.methods.fgssl import FGSSL, contrast_loss, structure_loss
from raysim.workloads.federated_data import Batch
from raysim.workloads.models.classifier import Classifier

FEATURES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
RECEIVED = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
LABELS = torch.tensor([0, 0, 1])

# cos(h_i, ĥ_j) / ½ = (2 0 0), (0 2 -2), (2 0 0); graphs 0 and 1 are of one class.
SIDE = math.log(math.exp(2) + 2)
CONTRAST = ((SIDE - 1) + (math.log(1 + math.exp(2) + math.exp(-2)) - 1) + SIDE) / 3
# Similarities to the others, over ½: local (0 2), (0 0), (2 0); received (0 0), (0 -2), (0 -2).
S = 1 / (1 + math.exp(-2))
FIRST = 0.5 * math.log(0.5 / (1 - S)) + 0.5 * math.log(0.5 / S)
SECOND = S * math.log(S / 0.5) + (1 - S) * math.log((1 - S) / 0.5)
STRUCTURE = (FIRST + SECOND + 0.0) / 3


def test_both_terms_by_hand() -> None:
    assert contrast_loss(FEATURES, RECEIVED, LABELS, 0.5).item() == pytest.approx(CONTRAST, rel=1e-6)
    assert structure_loss(FEATURES, RECEIVED, 0.5).item() == pytest.approx(STRUCTURE, rel=1e-6)
    # Half the cosines at temperature 1 are the cosines at ½: lengths do not count, the temperature does.
    assert contrast_loss(3 * FEATURES, 5 * RECEIVED, LABELS, 0.5).item() == pytest.approx(CONTRAST, rel=1e-6)
    assert contrast_loss(FEATURES, RECEIVED, LABELS, 1.0).item() != pytest.approx(CONTRAST, rel=1e-2)
    assert structure_loss(FEATURES, FEATURES, 0.5).item() == pytest.approx(0.0, abs=1e-7)


def test_one_graph_and_features_of_zero_are_finite() -> None:
    one = torch.zeros(1, 2, requires_grad=True)
    assert contrast_loss(one, RECEIVED[:1], LABELS[:1], 0.5).item() == 0.0
    assert structure_loss(one, RECEIVED[:1], 0.5).item() == 0.0
    inputs = torch.tensor([[-1.0, -2.0], [3.0, 4.0], [-1.0, 1.0]], requires_grad=True)
    features = inputs.relu()  # the first is zero: no unit is on
    total = contrast_loss(features, RECEIVED, LABELS, 0.5) + structure_loss(features, RECEIVED, 0.5)
    total.backward()
    assert total.isfinite() and inputs.grad is not None and inputs.grad.isfinite().all()
    assert not inputs.grad[0].any() and inputs.grad[1].any()


def test_the_loss_against_the_model_as_it_was_received() -> None:
    body = nn.Linear(2, 2, bias=False)
    head = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        body.weight.copy_(torch.eye(2))
        head.weight.zero_()  # cross-entropy log 2
    model = Classifier(body, head)
    method = FGSSL(contrast=0.3, structure=0.7)
    loss = method.loss(model)  # from here on the global features are x itself
    batch = Batch(x=RECEIVED, y=LABELS)
    same = contrast_loss(RECEIVED, RECEIVED, LABELS, 0.5).item()
    assert loss(model, batch).item() == pytest.approx(math.log(2) + 0.3 * same, rel=1e-6)
    with torch.no_grad():
        body.weight.copy_(torch.tensor([[0.6, -0.8], [0.8, 0.6]]) @ torch.diag(torch.tensor([1.0, 2.0])))
    moved = body(RECEIVED).detach()
    expected = contrast_loss(moved, RECEIVED, LABELS, 0.5).item(), structure_loss(moved, RECEIVED, 0.5).item()
    total = loss(model, batch)
    assert total.item() == pytest.approx(math.log(2) + 0.3 * expected[0] + 0.7 * expected[1], rel=1e-6)
    assert expected[0] != pytest.approx(same, rel=1e-3)
    total.backward()
    assert body.weight.grad is not None and body.weight.grad.any()


def test_the_global_model_is_in_evaluation_mode_and_leaves_no_trace() -> None:
    torch.manual_seed(0)
    parts = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    model = Classifier(parts, nn.Linear(3, 2)).train()
    batch = Batch(x=torch.randn(4, 2), y=torch.tensor([0, 1, 0, 1]))
    loss = FGSSL().loss(model)
    state = torch.random.get_rng_state()
    loss(model, batch)
    after, drawn = {name: value.clone() for name, value in model.state_dict().items()}, torch.random.get_rng_state()
    assert all(part.training for part in model.modules())
    with torch.no_grad():
        for name, initial in (("running_mean", 0.0), ("running_var", 1.0), ("num_batches_tracked", 0)):
            model.get_buffer(f"body.1.{name}").fill_(initial)
    torch.random.set_rng_state(state)
    model(batch.x)  # one plain pass moves BatchNorm's statistics and the random stream just as far
    assert all(torch.equal(after[name], value) for name, value in model.state_dict().items())
    assert torch.equal(drawn, torch.random.get_rng_state())
