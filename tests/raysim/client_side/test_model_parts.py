"""What a method adds to the user's model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import raysim
from raysim.client_side.model_notes import outputs_probabilities
from raysim.client_side.model_parts import check_head_of_body, extended
from raysim.config.run_config import build
from raysim.errors import ConfigError
from raysim.methods.fedavg import FedAvg
from raysim.traits import Traits
from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.classifier import Classifier
from tests.small_runs import worker_of


class Shifted(nn.Module):
    """logits + shift, the shift drawn at random."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.body, self.head = module.body, module.head
        self.shift = nn.Parameter(torch.randn(module.head.out_features))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.body(inputs)) + self.shift
        return result


@dataclass(frozen=True)
class Shifting(FedAvg):
    def extend(self, module: nn.Module) -> nn.Module:
        return Shifted(module)


def classifier(width: int) -> Classifier:
    return Classifier(nn.Linear(width, 3), nn.Linear(3, 2))


@pytest.mark.parametrize("method", [FedAvg(), object()])
def test_a_method_that_leaves_out_extend_has_the_model_itself(method: object) -> None:
    module = classifier(4)
    with torch.random.fork_rng():
        assert extended(method, module, 0) is module


def test_what_is_added_is_the_same_for_models_of_any_size() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        small = extended(Shifting(), classifier(4), 7)
        large = extended(Shifting(), classifier(40), 7)
        other = extended(Shifting(), classifier(4), 8)
    assert torch.equal(small.get_parameter("shift"), large.get_parameter("shift"))
    assert not torch.equal(small.get_parameter("shift"), other.get_parameter("shift"))


def test_a_worker_extends_every_model_and_leaves_the_global_stream() -> None:
    config = build([{"method.name": "fedavg", "model.name": "mlp", "workload.clients": 2, "engine.backend": "inline"}])
    plain, worker = worker_of(config), worker_of(replace(config, method=Shifting()))
    state = torch.get_rng_state()
    model = worker.model(0)
    assert torch.equal(torch.get_rng_state(), state)
    names = {entry.name: entry.shared for entry in model.entries}
    assert names["shift"] and names["head.weight"] and names["body.1.weight"]
    assert model.buffer.numel() == plain.model(0).buffer.numel() + 10
    # The model's own initial values are those of every other method.
    assert torch.equal(model.module.get_parameter("head.weight"), plain.model(0).module.get_parameter("head.weight"))
    x = torch.rand(3, 1, 8, 8)
    difference = model.module(x) - plain.model(0).module(x)
    torch.testing.assert_close(difference, model.module.get_parameter("shift").expand(3, -1), rtol=0, atol=1e-6)


def test_something_else_than_a_module_is_refused() -> None:
    class Nothing:
        def extend(self, module: nn.Module) -> None:
            return None

    with torch.random.fork_rng(), pytest.raises(ConfigError, match=r"Nothing\.extend must return .* not NoneType"):
        extended(Nothing(), classifier(4), 0)


def test_a_client_whose_data_cannot_be_read_is_left_to_its_own_task() -> None:
    """``on_client_error skip`` may leave it out: the check of the model does not end the run."""

    def client(number: int, device: str) -> Any:
        raise WorkloadError("image 3 is damaged")

    federation: Any = SimpleNamespace(input_spec=lambda number: None, client=client)
    module = nn.Sequential()
    module.body, module.head = nn.Linear(2, 2), nn.Linear(2, 2)
    method, model = SimpleNamespace(traits=Traits(head_of_body=True)), SimpleNamespace(build=lambda task: module)
    config: Any = SimpleNamespace(method=method, model=model, seed=0)
    check_head_of_body(config, federation)


@dataclass(frozen=True)
class Ending:
    """A user's linear model with another module at its end."""

    end: Any = None

    def build(self, task: Any) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, task.classes), self.end)


@pytest.mark.parametrize(
    ("end", "hinted"), [(nn.Softmax(dim=1), True), (nn.Identity(), False), (nn.Sigmoid(), False), (nn.ReLU(), False)]
)
def test_a_softmax_at_the_end_is_told(end: nn.Module, hinted: bool) -> None:
    config = build([{"method.name": "fedavg", "workload.clients": 2, "engine.backend": "inline"}])
    worker = worker_of(replace(config, model=Ending(end)))
    before = worker.model(0).buffer.clone()
    assert ("as after a Softmax" in outputs_probabilities(worker)) == hinted
    assert torch.equal(worker.model(0).buffer, before)


def test_a_softmax_is_told_at_the_start_of_a_run(tmp_path: Any) -> None:
    features, labels = np.random.default_rng(0).standard_normal((40, 4), np.float32), np.arange(40) % 3
    module = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
    data: dict[str, Any] = {"clients": [(features, labels)] * 2, "rounds": 1, "backend": "inline"}
    with pytest.warns(UserWarning, match="Leave the Softmax at the model's end out") as told:
        result = raysim.run(model=module, **data, output=str(tmp_path / "run"))
    assert told[0].filename == __file__
    assert "Leave the Softmax at the model's end out" in (result.folder / "run.log").read_text()
