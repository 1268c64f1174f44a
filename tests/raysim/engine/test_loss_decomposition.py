"""The loss decomposition on runs: against the union of the data, and that asking for it changes nothing else."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

from raysim import schedule
from raysim.aggregators.loss_decomposition import decompose
from raysim.aggregators.means import PairwiseSum
from raysim.client_side.train_chunk import kept_globals, seed_globals
from raysim.client_side.worker import Worker, fixed_threads
from raysim.cohort import Cohort
from raysim.config import registry
from raysim.config.registry import known, resolve
from raysim.config.run_config import RunConfig
from raysim.engine.evaluation import EvaluateClients
from raysim.exchange.pool_protocol import Job, Pool, results_of
from raysim.method import ClientTask, Context, Message, Traits, Update, Updates
from raysim.methods.fedavg import FedAvg
from raysim.results.result import comparable
from raysim.running.simulation import run
from raysim.workloads.metrics import evaluate
from tests.made_subgraphs import rings
from tests.small_runs import small_run, worker_of

COLUMNS = list(decompose(np.ones(1), np.ones((1, 1)), np.ones(1)))
METHODS = [name for name in known("method") if "workload.name" not in getattr(resolve("method", name), "defaults", {})]
"""Every registered method that runs on images as it is."""


def config(tmp_path: Path, method: str, every: int) -> RunConfig:
    options = {"model.name": "mlp", "workload.clients": 4, "workload.limit": 200, "schedule.rounds": 3}
    return small_run(tmp_path / f"{method}-{every}", options, method__name=method, evaluation__decompose_every=every)


def test_the_global_loss_is_that_on_the_union_and_nothing_else_changes(tmp_path: Path) -> None:
    wanted = config(tmp_path, "fedavg", 3)
    found, plain = run(wanted), run(config(tmp_path, "fedavg", 0))
    assert found.rounds[COLUMNS].notna().all(axis=1).tolist() == [False, False, True]
    assert comparable(found.rounds.drop(columns=COLUMNS)).equals(comparable(plain.rounds))
    worker = Worker(wanted, worker_of(wanted).federation.pooled())
    union = evaluate(found.model, worker.data(0).train.batches(500), 10)
    row = found.rounds.iloc[-1]
    assert row["global_loss"] == pytest.approx(union.loss, rel=1e-5)
    # Skewed clients: a local model fits its own data better than the others'.
    assert row["distribution_shift_loss"] > 0
    assert row["local_loss"] < row["global_loss"]


def whole_model(worker: Worker, client: int, sent: Message, before: Any, update: Update, after: Any) -> torch.nn.Module:
    """A client's trained model put together from what travels and what stays, as each method has it."""
    name, parameters = registry.public_name("method", worker.method), sent.parameters + update.delta
    extra = dict(sent.extra)
    if name == "ifca":  # the chosen one of several models was trained
        parameters = (sent.parameters, *sent.extra["others"])[after.method] + update.delta
        extra["others"] = [parameters]
    if name == "fedpac":
        extra["head"] = update.extra["head"]
    model = worker.deployed(client, Message(parameters, extra), after)
    if name == "fedcp":  # while it trained: the global head as received, and the context of the head as it came
        trained = copy.deepcopy(model.module.state_dict())
        start = worker.deployed(client, sent, before).module
        own = {key: value for key, value in trained.items() if not key.startswith(("global_head.", "context"))}
        start.load_state_dict(own, strict=False)
        return copy.deepcopy(start)
    return copy.deepcopy(model.module)


def mean_loss(module: torch.nn.Module, worker: Worker, client: int, state: Any = None) -> float:
    """The loss on what the client trains with; ``state``: where the method makes that from its data."""
    module.eval()
    with torch.no_grad():
        (batch,) = worker.judged_data(client, state).train.batches(10_000)
        return float(torch.nn.functional.cross_entropy(module(batch.x).double(), batch.y))


def by_hand(config: RunConfig) -> list[dict[str, float]]:
    """Every round's terms: each client trained here, one after another, and all n² losses evaluated here."""
    method, worker = config.method, worker_of(config)
    model = worker.model(0)
    shared_parameter_count = model.shared_parameter_count
    kept: dict[int, Any] = {}
    server = method.init_server(model)
    clients = range(worker.federation.clients)
    samples = np.array([worker.federation.samples(client) for client in clients])
    everyone = Cohort(len(clients), samples.sum(), len(clients), samples.sum(), len(clients))
    found = []
    for number in range(1, config.schedule.rounds + 1):
        updates, models = [], []
        for client in clients:
            message, before = method.message(server, client), kept.get(client)
            epochs, rate = schedule.planned_intervals(config)[number - 1], config.training.learning_rate
            classes = worker.federation.input_spec(client).classes
            task = ClientTask(config.seed, number, client, epochs, rate, config.training, classes, cohort=everyone)
            before = worker.first_state(client) if before is None else before
            with kept_globals(own_code=False):
                seed_globals(task, own_code=False)
                update, kept[client] = worker.train(task, message, before)
            if kept[client] is None:
                del kept[client]
            updates.append(update)
            models.append(whole_model(worker, client, message, before, update, kept.get(client)))
        rounds = config.schedule.rounds
        context = Context(config.seed, number, rounds, rate, shared_parameter_count, config.training, everyone)
        total = PairwiseSum()  # as the engine adds, to the bit: BatchNorm lets a difference grow
        for count, update in zip(samples, updates, strict=True):
            total.add(update.delta * np.float32(count))
        summed = total.total() if method.traits.weighted_mean else None
        server = method.aggregate(server, Updates(tuple(clients), samples, tuple(updates), summed), context)
        shares = samples / samples.sum()
        losses = np.array([[mean_loss(model, worker, judge, kept.get(judge)) for judge in clients] for model in models])
        new = []
        for client in clients:
            state = kept.get(client)
            judged = worker.deployed(client, method.message(server, client), state).module
            new.append(mean_loss(judged, worker, client, state))
        local, everywhere = shares @ np.diag(losses), shares @ losses @ shares
        found.append({"local": local, "shift": everywhere - local, "aggregation": shares @ new - everywhere})
    return found


APART = ("ditto", "pfedme", "perfedavg", "fedbabu")
"""Methods whose clients are judged by models that aggregation does not touch."""
NONE = ("local", "fedproto")
"""Methods that average no part of a model."""
SMALL = {
    "model.name": "mlp",
    "workload.clients": 3,
    "workload.limit": 150,
    "schedule.rounds": 2,
    "schedule.local_epochs": 2,
    "evaluation.decompose_every": 1,
}


def averaged_by_hand(config: RunConfig) -> list[dict[str, float]]:
    """Every round's terms from the models that clients send and their mean by samples, no ``deploy`` in it."""
    method, worker = config.method, worker_of(config)
    model = worker.model(0)
    first, shared, server = copy.deepcopy(model.module), model.take_shared(), method.init_server(model)
    sizes = np.array([worker.federation.samples(client) for client in range(3)])
    shares, states, found = sizes / sizes.sum(), dict[int, Any](), []
    named = [entry for entry in model.entries if entry.shared]

    def module_of(vector: Any) -> torch.nn.Module:
        """The initial model with these shared entries."""
        module, start = copy.deepcopy(first), 0
        with torch.no_grad():
            for entry in named:
                values = torch.tensor(vector[start : start + entry.stop - entry.start]).view(entry.shape)
                module.get_parameter(entry.name).copy_(values)
                start += entry.stop - entry.start
        return module

    for number in range(1, config.schedule.rounds + 1):
        sent = []
        for client in range(3):
            task = ClientTask(config.seed, number, client, 2, config.training.learning_rate, config.training, 10)
            state = states.get(client, worker.first_state(client))
            update, states[client] = worker.train(task, method.message(server, client), state)
            sent.append(shared + update.delta)
        server = shared = np.einsum("i,id->d", shares, np.stack(sent)).astype(np.float32)
        losses = np.array([[mean_loss(module_of(own), worker, judge) for judge in range(3)] for own in sent])
        new = float(shares @ [mean_loss(module_of(shared), worker, judge) for judge in range(3)])
        local, everywhere = shares @ np.diag(losses), shares @ losses @ shares
        terms = {"distribution_shift_term": everywhere - local, "aggregation_term": new - everywhere}
        found.append({"local_loss": local, **terms, "global_loss": new})
    return found


@pytest.mark.parametrize("method", APART)
def test_models_that_are_averaged_are_judged_where_clients_are_judged_by_others(tmp_path: Path, method: str) -> None:
    wanted = small_run(tmp_path / method, SMALL, method__name=method)
    rows = run(wanted).rounds
    with fixed_threads(wanted.engine.threads):
        found = averaged_by_hand(wanted)
    for number, expected in enumerate(found):
        row = rows.iloc[number]
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name
        assert row["global_loss"] != pytest.approx(row["local_loss"], rel=1e-3)


def test_dittos_averaged_models_are_fedavgs(tmp_path: Path) -> None:
    both = [run(small_run(tmp_path / name, SMALL, method__name=name)).rounds for name in ("fedavg", "ditto")]
    pd.testing.assert_frame_equal(both[0][COLUMNS], both[1][COLUMNS], rtol=1e-5)


@pytest.mark.parametrize("method", NONE)
def test_a_method_that_averages_nothing_has_no_aggregation_term(tmp_path: Path, method: str) -> None:
    result = run(small_run(tmp_path / method, SMALL, method__name=method))
    row = result.rounds.iloc[-1]
    assert row[["aggregation_term", "aggregation_loss", "global_loss"]].isna().all()
    assert row["distribution_shift_term"] > 0 and row["local_loss"] > 0
    assert "has a local and a shift term, and neither" in (result.folder / "run.log").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted({*METHODS} - {*APART, *NONE}))
def test_every_method_is_judged_by_its_clients_whole_trained_models(tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {
        "method.name": method,
        "model.name": "mlp",
        "workload.clients": 3,
        "workload.limit": 150,
        "schedule.rounds": 2,
        "schedule.local_epochs": 3,
        "evaluation.decompose_every": 1,
    }
    if method == "fedbn":
        options |= {"model.name": "tests.raysim.user_code:WithBatchNorm", "training.last_batch": "keep"}
    wanted = small_run(tmp_path / method, options)
    check_by_hand(wanted, run(wanted).rounds)


@pytest.mark.parametrize("clients", [1, 2])
def test_models_are_judged_on_the_graphs_that_they_are_trained_on(tmp_path: Path, clients: int) -> None:
    """FedSage+ adds neighbors to every client's graph: both sides of the aggregation term are measured with these."""
    options = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": clients}
    options |= {"workload.partition": "louvain", "workload.split": "random", "workload.test_share": 0.7}
    options |= {"workload.validation_share": 0.0, "model.name": "sage", "model.hidden": 4, "schedule.rounds": 2}
    options |= {"method.name": "fedsageplus", "method.width": 8, "method.hidden_share": 1.0}
    options |= {"method.generator_epochs": 30, "method.generator_rate": 0.05, "evaluation.decompose_every": 1}
    wanted = small_run(tmp_path / "run", options)
    found = run(wanted)
    assert found.clients["generated_neighbors"].max() > 0
    check_by_hand(wanted, found.rounds)
    if clients == 1:  # the mean of one model is that model
        assert found.rounds["aggregation_term"].tolist() == pytest.approx([0, 0], abs=1e-6)


def test_fed_pubs_averaged_models_are_judged(tmp_path: Path) -> None:
    """Its clients are judged by what they trained themselves: θ⁺ was θ_i, and the terms were each other's negative."""
    options = {"workload.name": "nodes", "workload.path": rings(tmp_path), "workload.clients": 3, "model.hidden": 8}
    options |= {"model.name": "gcn", "schedule.rounds": 2, "method.name": "fedpub", "method.proxies": 1}
    rows = run(small_run(tmp_path / "run", {**options, "evaluation.decompose_every": 1})).rounds
    assert (abs(rows["aggregation_term"] + rows["distribution_shift_term"]) > 1e-4).all()


@dataclass(frozen=True)
class PlainMean(FedAvg):
    traits: ClassVar[Traits] = Traits(weighted_mean=True, plain_mean=True)


def test_a_mean_over_clients_leaves_the_weights_of_the_terms(tmp_path: Path) -> None:
    """p_i = m_i / m for any method: with a plain mean every client counted the same in all terms."""
    plain = run(config(tmp_path, f"{__name__}:PlainMean", 1)).rounds.iloc[0]
    whole = run(config(tmp_path, "fedavg", 1)).rounds.iloc[0]
    terms = ["local_loss", "distribution_shift_term"]  # of the clients' models, which round 1 trains alike
    assert plain[terms].tolist() == pytest.approx(whole[terms].tolist(), rel=1e-9)
    assert plain["aggregation_term"] != pytest.approx(whole["aggregation_term"], rel=1e-6)


def test_evaluations_cost_the_samples_that_they_look_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their deadlines are learned from seconds by cost: some counted clients, and made those of the others useless."""
    seen: list[Job] = []

    def kept(pool: Pool, jobs: list[Job], note: Any) -> list[Any]:
        seen.extend(jobs)
        return results_of(pool, jobs, note)

    monkeypatch.setattr("raysim.engine.loss_decomposition.results_of", kept)
    wanted = config(tmp_path, "fedavg", 3)
    run(wanted)
    costs, everyone = {True: 0.0, False: 0.0}, sum(map(worker_of(wanted).federation.samples, range(4)))
    for job in seen:
        costs[isinstance(job.task, EvaluateClients)] += job.cost
    assert costs == {True: everyone, False: 4 * everyone}


def check_by_hand(wanted: RunConfig, rows: pd.DataFrame) -> None:
    with fixed_threads(wanted.engine.threads):
        found = by_hand(wanted)
    for number, expected in enumerate(found):
        row = rows.iloc[number]
        total = row["local_loss"] + row["distribution_shift_term"] + row["aggregation_term"]
        assert row["global_loss"] == pytest.approx(total, rel=1e-9)
        assert row["local_loss"] == pytest.approx(expected["local"], rel=1e-5)
        assert row["distribution_shift_term"] == pytest.approx(expected["shift"], rel=1e-4, abs=1e-6)
        assert row["aggregation_term"] == pytest.approx(expected["aggregation"], rel=1e-4, abs=1e-6)
