"""What cannot be done is one sentence, exit code 2 and no folder, before Ray is started or data is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim import seeds
from raysim.config import registry
from raysim.config.run_config import build
from raysim.driver.federation_checks import moments_kept_over_missed_rounds, options_unread
from raysim.engine.load_federation import load_federation
from raysim.workloads.parallel_map import sequential
from tests.raysim.conftest import Start

RAY = ("--engine.backend=ray", "--engine.dashboard=false", "--output=run")


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if anything is run, and hides the data sets of this machine."""
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    monkeypatch.setattr("raysim.running.simulation.execute", lambda *_, **__: pytest.fail("the run was started"))
    if "ray" in sys.modules:  # another module's tests may have left theirs
        monkeypatch.setattr("ray.is_initialized", lambda: False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workload=npz", "--workload.path=nothing.npz"], "no .npz file nothing.npz"),
        (
            ["--workload=mnist", "--workload.path=nowhere"],
            "had from nowhere: there is no such folder.",
        ),
        (["--workload=har", "--workload.path=nowhere"], "har: there is no nowhere; python -m raysim.data convert har"),
        (["--workload=covid-fl", "--workload.path=nowhere"], "covid-fl: missing:"),
        (
            ["--method=fedavg", "--workload=tudataset", "--model=gin", "--workload.path=nowhere"],
            "in nowhere (no such",
        ),
        (["--clients=2000"], "2000 clients are more than the 1438 training samples"),
        (["--workload=toy-graphs", "--model=gin", "--clients=1000000000"], "clients: 1000000000 is not allowed"),
        (["--clients=30", "--min_samples=100"], "set clients to at most 14"),
        (["--partition=shards", "--classes_per_client=11"], "set classes_per_client to 1..10"),
        (["--joins=2,2", "--join_every=1"], "joins 2 + 2 = 4, but the run has 10 clients"),
        (["--engine.actors=100000"], "--engine.actors 100000 cannot be met"),
        (["--engine.cpus_per_client=100000"], "a client actor asks for 100000 CPU"),
        (["--method=mine:Nothing"], "/mine.py) does not define 'Nothing'. Its classes: "),
        (["--stop_at=90"], "stop_at: 90 is never reached by accuracy, which lies between 0 and 1; for 90 % set it to"),
        (
            ["--measure=f1", "--patience=2"],
            "f1 will be no column of the table of rounds. Columns of this run: accuracy",
        ),
        (["--method=mine:NoTraits"], "lacks traits. Add `traits: ClassVar[Traits] = Traits()`"),
        (["--method=mine:Misnamed"], "lacks the function aggregate. Is agregate for aggregate a slip of the pen?"),
        (["--method=mine:Declares"], "lacks the functions message, train, aggregate, deploy."),
        (["--method=mine:Empty"], "lacks the functions shared_names, init_server"),
        (["--model=mine:Empty"], "model mine:Empty: Empty lacks the function build"),
        (["--model=gin"], "model gin takes graphs, but the clients of workload digits have arrays"),
        (["--model=alexnet"], "needs images of at least 15x15 pixels"),
        (["--model=mlp", "--model.hidden=0"], "hidden must be one width or a list of widths"),
        (["--model=resnet18", "--model.weights_file=nowhere.pth"], "There is no weights file nowhere.pth"),
        (["--method=fedpac", "--workload=toy-graphs", "--model=gin"], "method fedpac needs clients that all have the"),
        *(
            ([f"--method={method}", "--workload=toy-graphs", "--model=gin"], f"method {method} needs clients that all")
            for method in ("ditto", "fedbabu", "perfedavg")
        ),
        (["--method=fedpac", "--model=logistic"], "needs a model with parameters named body.*"),
        (["--method=centralized", "--workload=toy-graphs", "--model=gin"], "have different tasks (erdos-renyi and"),
        (["--method=fedstar", "--model=gin", "--precision=auto"], "Models with them: gin-star"),
        (
            ["--method=fedavg", "--freeze_batchnorm"],
            "choose a model with BatchNorm: mobilenet, resnet18, resnet50, efficientnet-lite0.",
        ),
        (
            ["--method=fedavg", "--batchnorm_statistics=local"],
            "batchnorm_statistics: local has no effect, because the model has no BatchNorm layer",
        ),
        (
            ["--method=fedavg", "--model=resnet18", "--batchnorm_statistics=local", "--freeze_batchnorm"],
            "batchnorm_statistics: local has no effect with training.freeze_batchnorm true",
        ),
        (
            ["--method=centralized", "--model=resnet18", "--batchnorm_statistics=local"],
            "batchnorm_statistics: local is not possible with method centralized, which trains on all data",
        ),
        (["--method=fedssp", "--model=gin"], "needs a model with parameters named body.eigenvalue_encoder.*"),
        (
            ["--method=fedrad", "--limit=4", "--partition=iid", "--clients=4", "--min_samples=1"],
            "of 4 clients that take part 4 have none: client 0, client 1, client 2 and 1 more",
        ),
        *(
            (["--samples_per_client=400", left_out], "workload.samples_per_client: clients are filled up with copies")
            for left_out in ("--unseen_clients=1", "--schedule.without=2")
        ),
        (
            ["--method=fedavg", "--workload=toy-graphs", "--model=gin", "--decompose_every=1"],
            "evaluation.decompose_every: the decomposition judges every client's model on every client's data",
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_the_start(
    start: Start, no_ray: None, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, error = start(*RAY, *arguments, small=False)
    assert code == 2 and message in error, error
    assert error.startswith("raysim: ") and "Traceback" not in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists() and not (tmp_path / "runs").exists()


SKETCHED: list[dict[str, Any]] = [
    {"workload.name": "digits", "workload.limit": 300},
    {"workload.name": "digits", "workload.partition": "views", "workload.clients": 30},
    {"workload.name": "digits", "workload.samples_per_client": 400, "workload.validation_share": 0.2},
    {"workload.name": "synthetic", "workload.train_size": 300, "workload.height": 9},
    {"workload.name": "npz", "workload.path": "sites.npz", "workload.partition": "sites"},
    {"workload.name": "covid-xray", "workload.path": "covid.npz", "workload.size": 20, "workload.use_val": True},
    {"workload.name": "toy-graphs", "workload.clients": 7, "workload.graphs_per_client": 13},
]


@pytest.mark.parametrize("options", SKETCHED, ids=str)
def test_a_sketch_has_the_clients_sizes_and_tasks_of_what_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    parts = {"train": 60, "val": 12, "test": 20}
    arrays: dict[str, Any] = {
        f"{part}_images": generator.integers(0, 255, (size, 8, 8), np.uint8) for part, size in parts.items()
    }
    arrays |= {f"{part}_labels": generator.integers(0, 3, (size, 1)) for part, size in parts.items()}
    arrays |= {f"{part}_sites": generator.choice(["a", "b", "c"], size) for part, size in parts.items()}
    np.savez(tmp_path / "sites.npz", **arrays)
    np.savez_compressed(tmp_path / "covid.npz", **arrays)
    model = "gin" if options["workload.name"] == "toy-graphs" else "mlp"
    config = build([{"method.name": "fedavg", "model.name": model, **options}])
    sketch = config.workload.sketch(lambda purpose: seeds.numpy_generator(config.seed, purpose))
    loaded = load_federation(config, sequential)
    assert (sketch.name, sketch.clients, sketch.class_names) == (loaded.name, loaded.clients, loaded.class_names)
    for client in range(loaded.clients):
        assert sketch.input_spec(client) == loaded.input_spec(client)
        assert sketch.samples(client) == loaded.samples(client)
        assert sketch.test_samples(client) == loaded.test_samples(client)
        assert sketch.client_name(client) == loaded.client_name(client)


def test_what_only_loading_tells_is_refused_in_the_same_way(start: Start, tmp_path: Path) -> None:
    code, error = start(
        "--workload=mine:Unsketched", "--method=fedrad", "--engine.backend=inline", "--output=run", small=False
    )
    assert code == 2 and "of 2 clients that take part 1 have none: lonely" in error
    assert not (tmp_path / "run").exists()


def test_a_client_that_never_takes_part_needs_no_test_samples(start: Start) -> None:
    code, error = start(
        "--workload=mine:Unsketched", "--method=fedrad", "--schedule.without=1", "--engine.backend=inline",
        "--rounds=1", "--output=run", small=False,
    )  # fmt: skip
    assert code == 0, error


def test_every_model_says_what_it_is_for_and_has_the_parts_it_says() -> None:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import has_batch_norm

    tasks = {
        "array": InputSpec((3, 64, 64), 2),
        "graph": InputSpec((5,), 2, "graph"),
        "nodes": InputSpec((5,), 2, "nodes"),
        "cnn1d": InputSpec((3, 64), 2),
    }
    tasks |= dict.fromkeys(("embedding-bag", "lstm", "transformer"), InputSpec((8,), 5, vocabulary=5))
    for name in registry.known("model"):
        if name in ("resnet50", "efficientnet-lite0"):  # the second has its own test: it needs an extra
            continue
        model = registry.resolve("model", name)()
        task = tasks.get(name, tasks[model.inputs])
        model.check(task)
        names = [parameter for parameter, _ in model.build(task).named_parameters()]
        for part in ("body.", "head.", "body.structure.", "body.eigenvalue_encoder.", "body.filter_encoder."):
            assert (part in model.parts) == any(parameter.startswith(part) for parameter in names), (name, part)
        assert model.batch_norm == has_batch_norm(model.build(task)), name


@pytest.mark.parametrize(
    ("options", "told"),
    [({"preset": "day"}, True), ({"preset": "uniform", "drop_probability": 0.1}, True), ({"preset": "uniform"}, False)],
)
def test_moments_that_are_kept_over_missed_rounds_are_told_of(options: dict[str, Any], told: bool) -> None:
    kept = {"training.optimizer_state": "kept", "training.momentum": 0.9, "method.name": "fedavg"}
    config = build([kept | {f"devices.{name}": value for name, value in options.items()}])
    said = moments_kept_over_missed_rounds(config, load_federation(config, sequential))
    assert ("the moments of a client that missed a round belong to an older model" in said) == told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"workload.partition": "iid", "workload.alpha": 0.1},
            [
                "workload.alpha 0.1 has no effect with workload.partition iid: it is read with dirichlet, "
                "equal_dirichlet, pachinko, quantity, views."
            ],
        ),
        (
            {"workload.view_samples": 9, "workload.sigma": 2.0, "workload.alpha": 0.1},
            [
                "workload.sigma 2.0 has no effect with workload.partition dirichlet: it is read with lognormal.",
                "workload.view_samples 9 has no effect with workload.partition dirichlet: it is read with views.",
            ],
        ),
        ({"workload.partition": "auto", "workload.alpha": 0.1}, []),
        (
            {"workload.partition": "auto", "workload.beta": 1.0},
            ["with workload.partition auto (dirichlet here): it is"],
        ),
        ({"workload.partition": "views", "workload.alpha": 0.1, "workload.view_samples": 9}, []),
        ({"workload.partition": "shards", "workload.alpha": 0.5, "workload.classes_per_client": 5}, []),
        (
            {"model.name": "mobilenet", "model.norm_groups": 4},
            ["model.norm_groups 4 has no effect with model.norm batch: it is read with group."],
        ),
        ({"model.name": "mobilenet", "model.norm_groups": 4, "model.norm": "group"}, []),
    ],
)
def test_options_that_nothing_reads_are_told_of(options: dict[str, Any], told: list[str]) -> None:
    config = build([{"method.name": "fedavg", "workload.name": "synthetic", "workload.clients": 3} | options])
    said = [*options_unread(config, load_federation(config, sequential))]
    assert len(said) == len(told) and all(words in text for words, text in zip(told, said, strict=True))
