"""What travels between clients of different tasks, named for every method that runs on graphs and every graph model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from raysim.client_side.sharing import common_names, running_statistics
from raysim.client_side.worker import Worker
from raysim.config.registry import known, resolve
from raysim.config.run_config import RunConfig, build, with_sections
from raysim.engine.checkpointing import facts_of
from raysim.engine.load_federation import load_federation
from raysim.errors import CheckpointError, ConfigError, ResultsError
from raysim.method import ClientTask
from raysim.results.load_model import load_model
from raysim.running.simulation import run
from raysim.storage import checkpoint
from raysim.storage.run_folder import RunFolder
from raysim.workloads.federated_data import distinct_input_specs
from raysim.workloads.graphs.federation import GraphClient, GraphFederation
from raysim.workloads.models.classifier import Classifier, task_specific
from raysim.workloads.parallel_map import sequential
from tests.made_subgraphs import NODE_METHODS

Widths = tuple[int, ...]


def names(prefix: str, children: Iterable[str], tensors: Iterable[str] = ("weight", "bias")) -> set[str]:
    return {f"{prefix}.{child}.{tensor}" for child in children for tensor in tensors}


STATISTICS = ("running_mean", "running_var")
GIN = names("body.convolutions.0", ("first", "second")) | names("body.convolutions.1", ("first", "second"))
SAGE = {
    f"body.convolutions.{layer}.{name}"
    for layer in (0, 1)
    for name in ("neighbors.weight", "neighbors.bias", "own.weight")
}
STRUCTURE = names("body.structure", ("embedding",)) | {
    f"body.structure.convolutions.{layer}.{name}" for layer in (0, 1) for name in ("linear.weight", "bias")
}
SPECTRAL_ENCODERS = names("body", ("eigenvalue_encoder.linear",)) | names("body.filter_encoder", "0134")
SPECTRAL_REST = (
    names("body.attention", ("attention_norm", "queries_keys_values", "output", "ffn_norm", "ffn.0", "ffn.2"))
    | names("body", ("decoder.0",))
    | names("body.convolutions.0", ("before.0", "ffn.0", "ffn.1", "ffn.3", "ffn.4"))
)
SPECTRAL_STATISTICS = names("body.filter_encoder", "14", STATISTICS) | names(
    "body.convolutions.0.ffn", "14", STATISTICS
)
SPECTRAL = SPECTRAL_ENCODERS | SPECTRAL_REST | SPECTRAL_STATISTICS
SPECTRAL_BATCH_NORM = {
    name for name in SPECTRAL if name.split(".")[-2] in "14" and not name.startswith("body.attention")
}
POLICY = {"policy.layers.0.weight", "policy.layers.0.bias", "policy.layers.1.weight", "policy.layers.1.bias"}

SHARED: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("local", "gin", {}, set()),
    ("local", "spectral", {}, set()),
    *((method, "gin", {}, GIN) for method in ("fedavg", "fedprox", "fedsage", "fedbn", "fedgh", "fedld", "fedrad")),
    *((method, "gin", {}, GIN) for method in ("gcfl", "fgssl", "apple", "scaffold")),
    *((method, "gin", {}, GIN) for method in ("feddyn", "fednova", "qfedavg", "moon", "ifca", "clustered")),
    *((method, "gin", {}, GIN) for method in ("fedavgm", "fedadagrad", "fedadam", "fedyogi")),
    *((method, "gin", {}, GIN) for method in ("fedper", "fedrep", "pfedme", "fedala")),
    ("fedcp", "gin", {}, GIN | POLICY),
    ("fedavg", "graphsage", {}, SAGE),
    ("fedsage", "graphsage", {}, SAGE),
    ("fedavg", "gin-star", {}, GIN | STRUCTURE),
    ("fedstar", "gin-star", {}, STRUCTURE),
    ("fedavg", "spectral", {}, SPECTRAL),
    ("fedbn", "spectral", {}, SPECTRAL - SPECTRAL_BATCH_NORM),
    ("apple", "spectral", {}, SPECTRAL - SPECTRAL_STATISTICS),
    ("fedcp", "spectral", {}, SPECTRAL | POLICY),
    ("fedssp", "spectral", {}, SPECTRAL_ENCODERS),
    ("fedssp", "spectral", {"preference": False}, SPECTRAL_ENCODERS),
    ("fedssp", "spectral", {"share": "nothing", "preference": False}, set()),
    ("fedssp", "spectral", {"share": "everything", "preference": False}, SPECTRAL_ENCODERS | SPECTRAL_REST),
    ("fedssp", "spectral", {"share": "everything"}, SPECTRAL_ENCODERS | SPECTRAL_REST),
    ("fedssp", "spectral", {"share": "rest", "preference": False}, SPECTRAL_REST),
    (
        "fedssp",
        "spectral",
        {"share": "everything", "share_statistics": True},
        SPECTRAL_ENCODERS | SPECTRAL_REST | SPECTRAL_STATISTICS,
    ),
]
"""Method, model, options of the method, and what travels between two sets of two classes."""


def config_of(method: str, model: str, options: dict[str, Any]) -> RunConfig:
    return build(
        [
            {"method.name": method, "workload.name": "toy-graphs", "workload.graphs_per_client": 12}
            | {"workload.clients": 3, "model.name": model, "model.hidden": 8}
            | {"model.layers": 1 if model == "spectral" else 2, "engine.backend": "inline"}
            | {f"method.{name}": value for name, value in options.items()}
        ]
    )


def with_width(part: GraphClient, width: int) -> GraphClient:
    features = np.zeros((len(part.graphs.features), width), np.float32)
    features[:, 0] = 1.0
    return replace(part, graphs=replace(part.graphs, features=features))


def two_sets(config: RunConfig, widths: Widths) -> GraphFederation:
    """Two sets of two classes, Erdős–Rényi and Watts–Strogatz graphs, with node features of these widths."""
    whole = load_federation(config, sequential)
    assert isinstance(whole, GraphFederation)
    pair = (whole.parts[0], whole.parts[2])
    parts = tuple(with_width(part, width) for part, width in zip(pair, widths, strict=True))
    assert {len(part.class_names) for part in parts} == {2}
    return replace(whole, parts=parts)


def shared_of(worker: Worker) -> set[str]:
    """What travels, the same for all clients."""
    found = [{entry.name for entry in worker.model(client).entries if entry.shared} for client in range(2)]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(3, 5), (4, 4)], ids=["different widths", "equal widths"])
@pytest.mark.parametrize(
    ("method", "model", "options", "expected"), SHARED, ids=[f"{row[0]}-{row[1]}-{row[2]}" for row in SHARED]
)
def test_what_clients_of_two_sets_share(
    method: str, model: str, options: dict[str, Any], expected: set[str], widths: Widths
) -> None:
    config = config_of(method, model, options)
    worker = Worker(config, two_sets(config, widths))
    assert len(distinct_input_specs(worker.federation)) == 2
    assert shared_of(worker) == expected
    assert not {name for name in expected if name.startswith(("body.pre", "body.node_encoder", "body.post", "head"))}


def test_every_method_is_named_here() -> None:
    elsewhere = {name for name in known("method") if resolve("method", name)().traits.same_task}
    elsewhere |= {"centralized", *NODE_METHODS}
    assert {row[0] for row in SHARED} | elsewhere == set(known("method"))


def test_clients_with_parts_of_one_set_share_all_that_the_method_names() -> None:
    config = config_of("fedavg", "gin", {})
    sets = two_sets(config, (4, 4))
    parts = tuple(replace(part, set_name="one set") for part in sets.parts)
    worker = Worker(config, replace(sets, parts=parts))
    ends = names("body", ("pre", "post")) | {"head.weight", "head.bias"}
    assert len(distinct_input_specs(worker.federation)) == 1
    assert shared_of(worker) == GIN | ends


class Own(nn.Sequential):
    """A model of a user that says nothing of its parts."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__(nn.Linear(inputs, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, classes))


def test_a_model_that_says_nothing_keeps_its_first_and_last_layer() -> None:
    middle = {"1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked", "3.weight", "3.bias"}
    for inputs, classes in ((3, 2), (5, 2), (5, 7)):
        assert common_names([Own(3, 2), Own(inputs, classes)]) == middle


def test_a_model_says_what_fits_one_task() -> None:
    class Said(Own):
        task_specific = ("0", "3", "4.bias")

    assert common_names([Said(3, 2), Said(3, 2)]) >= {"4.weight", "1.weight"}
    assert not common_names([Said(3, 2), Said(3, 2)]) & {"0.weight", "0.bias", "3.weight", "3.bias", "4.bias"}


def test_a_layer_travels_whole_or_not_at_all() -> None:
    """The bias of a layer with weights of another shape is of another function."""

    def model(inner: int) -> nn.Module:
        return nn.Sequential(nn.Linear(3, inner), nn.Linear(inner, 4), nn.Linear(4, 4), nn.Linear(4, 2))

    assert common_names([model(5), model(6)]) == {"2.weight", "2.bias"}


def test_the_body_of_a_classifier_that_says_nothing_keeps_its_first_layer() -> None:
    body = nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))
    assert task_specific(Classifier(body, nn.Linear(4, 2))) == ("body.1.weight", "body.1.bias", "head")
    assert task_specific(Classifier(nn.Linear(3, 4), nn.Linear(4, 2))) == ("body.weight", "body.bias", "head")
    assert task_specific(Classifier(nn.Flatten(), nn.Linear(4, 2))) == ("head",)
    assert task_specific(nn.Linear(3, 2)) == ("weight", "bias")


def test_an_extension_that_says_nothing_keeps_what_the_model_said() -> None:
    from raysim.client_side.model_parts import extended

    class Gated(nn.Module):
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.body, self.head, self.gate = module.body, module.head, nn.Linear(4, 4)

    class Method:
        def extend(self, module: nn.Module) -> nn.Module:
            return Gated(module)

    found = extended(Method(), Classifier(nn.Linear(3, 4), nn.Linear(4, 2)), 0)
    assert common_names([found, found]) == {"gate.weight", "gate.bias"}


def test_a_method_with_nothing_left_to_share_says_so() -> None:
    @dataclass(frozen=True)
    class Ends:
        def build(self, task: Any) -> Classifier:
            return Classifier(nn.Linear(task.input_shape[0], 4), nn.Linear(4, task.classes))

    config = config_of("fedavg", "gin", {})
    worker = Worker(replace(config, model=Ends()), two_sets(config, (3, 5)))
    with pytest.raises(ConfigError, match=r"toy-graphs have different tasks, .* nothing fits all .*--method local"):
        worker.model(0)


def with_local_statistics(method: str = "fedavg", model: str = "spectral", **options: Any) -> RunConfig:
    config = config_of(method, model, options)
    return with_sections(config, training=replace(config.training, batchnorm_statistics="local"))


@pytest.mark.parametrize("widths", [(3, 5), (4, 4)], ids=["different widths", "equal widths"])
def test_local_statistics_do_not_travel_and_scale_and_shift_do(widths: Widths) -> None:
    config = with_local_statistics()
    assert shared_of(Worker(config, two_sets(config, widths))) == SPECTRAL - SPECTRAL_STATISTICS


def test_of_one_task_too_a_client_keeps_them_and_is_judged_by_them() -> None:
    config = with_local_statistics()
    sets = two_sets(config, (4, 4))
    worker = Worker(config, replace(sets, parts=tuple(replace(part, set_name="one set") for part in sets.parts)))
    model = worker.model(0)
    statistics = {entry.name for entry in model.entries if not entry.shared}
    assert statistics == running_statistics(model.module) and len(statistics) > 1
    state = worker.first_state(0)
    assert state is not None and state.method is None
    server = config.method.init_server(model)
    message = config.method.message(server, 0)
    task = ClientTask(0, 1, 0, 1, 0.1, config.training, classes=2)
    _, after = worker.train(task, message, state)
    assert after is not None and np.abs(after.private - state.private).max() > 0
    deployed = worker.deployed(0, message, after)
    np.testing.assert_array_equal(deployed.take_private(), after.private)
    np.testing.assert_array_equal(deployed.take_shared(), message.parameters)


@pytest.mark.parametrize("method", ["fedbn", "fedssp", "local"])
def test_where_none_would_travel_the_option_has_no_effect(method: str) -> None:
    config = with_local_statistics(method)
    message = f"local has no effect with method {method}, whose clients keep them anyway"
    with pytest.raises(ConfigError, match=message):
        Worker(config, two_sets(config, (4, 4))).model(0)


def test_a_model_without_batch_norm_has_no_statistics_that_could_stay() -> None:
    config = with_local_statistics(model="gin")
    with pytest.raises(ConfigError, match="local has no effect, because the model has no BatchNorm layer"):
        Worker(config, two_sets(config, (4, 4))).model(0)


def test_fedavg_with_local_statistics_is_fedssp_that_shares_everything(tmp_path: Path) -> None:
    """The same first round: FedSSP averages all named parameters, here by samples, and statistics stay."""
    short = {"schedule.rounds": 1, "model.hidden": 8, "model.layers": 1, "model.name": "spectral"}
    base = {"workload.name": "toy-graphs", "workload.graphs_per_client": 12, "workload.clients": 3, **short}
    base |= {"engine.backend": "inline", "pictures": False, "training.learning_rate": 0.01}
    same = {"method.name": "fedssp", "method.share": "everything", "method.preference": False}
    ours = build(
        [{**base, "output": str(tmp_path / "a"), "method.name": "fedavg", "training.batchnorm_statistics": "local"}]
    )
    same |= {"method.client_weights": "samples", "training.optimizer": ours.training.optimizer}
    theirs = build([{**base, **same, "output": str(tmp_path / "b")}])
    found = [run(config).rounds.iloc[-1] for config in (ours, theirs)]
    assert not (tmp_path / "a" / "model.safetensors").exists()
    with pytest.raises(ResultsError, match="every client has a model of its own"):
        load_model(tmp_path / "a")
    models = [load_model(tmp_path / "a", client=client).state_dict() for client in (0, 1)]
    assert not torch.equal(*(model["body.filter_encoder.1.running_mean"] for model in models))
    changed = (("a", ours, "averaged", "local → averaged"), ("b", theirs, "local", "averaged → local"))
    for place, config, value, words in changed:
        newest, *_ = checkpoint.newest_first(RunFolder(tmp_path / place).checkpoints)
        given: dict[str, Any] = {"batchnorm_statistics": value}
        other = with_sections(config, training=replace(config.training, **given))
        with pytest.raises(CheckpointError, match=rf"other settings: training\.batchnorm_statistics: {words}"):
            facts_of(newest, other)
    for column in ("loss", "client_accuracy_mean", "train_loss"):
        assert found[0][column] == pytest.approx(found[1][column], abs=1e-6)
