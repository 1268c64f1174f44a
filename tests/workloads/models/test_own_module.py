"""Torch modules of one's own, named by their class."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from raysim.config import registry
from raysim.errors import ConfigError
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from tests.own_graphs import Net

TASK = InputSpec((5,), 3, "graph", edge_width=2)


class OfTask(nn.Module):
    """It is made for a task."""

    def __init__(self, inputs: InputSpec, hidden: int = 4) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs.input_shape[0], hidden), nn.Linear(hidden, inputs.classes))


class OfNumbers(nn.Module):
    """It wants what nobody gives it."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, classes)


def test_a_module_class_is_a_model_by_its_name() -> None:
    name = f"{__name__}:OfTask"
    options = registry.resolve("model", name)
    assert registry.class_name("model", options) == name and registry.resolve("model", name) is options
    torch.manual_seed(3)
    module = options().build(TASK)
    torch.manual_seed(3)
    assert isinstance(module, OfTask) and module.get_parameter("layers.1.weight").shape == (3, 4)
    assert torch.equal(module.get_parameter("layers.0.weight"), OfTask(TASK).get_parameter("layers.0.weight"))
    assert isinstance(registry.resolve("model", "tests.own_graphs:Net")().build(TASK), Net)


def test_a_module_that_wants_more_than_the_task_is_refused_before_it_is_made() -> None:
    options = registry.resolve("model", f"{__name__}:OfNumbers")
    with pytest.raises(WorkloadError, match="model: OfNumbers asks for width, classes, and it is given the task alone"):
        options().check(TASK)


def test_what_is_no_module_is_still_refused() -> None:
    with pytest.raises(ConfigError, match=r"tests\.own_graphs:graphs is not a dataclass"):
        registry.resolve("model", "tests.own_graphs:graphs")


def test_a_model_of_ones_own_without_torch_needs_none() -> None:
    program = (
        "import sys; from raysim.config.registry import resolve\n"
        "resolve('model', 'examples.own_model:Narrow'); print('torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )
