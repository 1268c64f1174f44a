"""What all models have in common: inputs of another kind are refused, with the models that take them."""

from __future__ import annotations

import re

import pytest

from raysim.config.registry import resolve
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.models import MODELS
from raysim.workloads.models.model_options import KINDS

TASKS = {
    "array": InputSpec((3, 64, 64), 10),
    "tokens": InputSpec((80,), 80, vocabulary=80),
    "graph": InputSpec((3,), 2, "graph"),
    "nodes": InputSpec((3,), 2, "nodes"),
}


@pytest.mark.parametrize("name", MODELS)
def test_other_inputs_are_refused(name: str) -> None:
    options = resolve("model", name)()
    takes = "tokens" if options.tokens else options.inputs
    for kind, task in TASKS.items():
        if kind != takes and not (kind == "tokens" and options.tokens is None):
            words = f"Model '{name}' takes {KINDS[takes][0]}, but .* are {KINDS[kind][0]}, of shape .*{KINDS[kind][1]}"
            for refused in (options.check, options.build):
                with pytest.raises(WorkloadError, match=words):
                    refused(task)


@pytest.mark.parametrize("kind", KINDS)
def test_the_models_that_errors_name_take_such_inputs(kind: str) -> None:
    for name in re.findall("'(.*?)'", KINDS[kind][1]):
        resolve("model", name)().check(TASKS[kind])


def test_models_know_their_names() -> None:
    assert all(resolve("model", name).name == name for name in MODELS)
