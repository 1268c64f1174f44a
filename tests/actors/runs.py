"""Small runs of every method, and actors that one run after another is lent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import ray

from raysim.actors.capacity import place, useful_actors
from raysim.actors.early_actors import EarlyActors
from raysim.actors.parallel_map import RayParallel
from raysim.actors.pool import RayPool
from raysim.actors.start_retry import patiently
from raysim.config.run_config import RunConfig
from raysim.driver.drive import drive
from raysim.engine.observer import Observer
from raysim.running.open_run import prepare
from raysim.running.simulation import run
from raysim.workloads.federated_data import Federation
from tests.actors.mortal import MortalStarter, sentence
from tests.fingerprint import fingerprint
from tests.made_subgraphs import kept_rings
from tests.small_runs import MakeConfig
from tests.watch import Watch

METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {"method__name": "fedavg"},
    # Sampling, late joiners, random intervals and NeuNet's memory of the last round, all at once.
    "fedrad": {
        "method__name": "fedrad",
        "schedule__sampling_rate": 0.7,
        "schedule__joins": (2, 2, 2),
        "schedule__join_every": 2,
    },
    # State that stays with clients between their client tasks.
    "local": {"method__name": "local", "schedule__sampling_rate": 0.5, "evaluation__decompose_every": 2},
}
GRAPHS = {
    "model__name": None,
    "workload__name": "toy-graphs",
    "workload__clients": 4,
    "workload__graphs_per_client": 60,
    "training__batch_size": 8,
    "schedule__rounds": 3,
}
NODES = {
    "workload__name": "nodes",
    "workload__path": kept_rings()[1],
    "workload__clients": 4,
    "model__name": "gcn",
    "model__hidden": 8,
    "schedule__rounds": 3,
}
IMAGES = {"schedule__rounds": 3, "model__name": "mlp", "schedule__local_epochs": 20}
# Every other method, in one run each.
OTHERS: dict[str, dict[str, Any]] = {
    "fedprox": IMAGES,
    "centralized": IMAGES,
    "fedld": IMAGES,
    "fedgh": IMAGES,
    "fedavgm": IMAGES,
    "fedadagrad": IMAGES,
    "fedadam": IMAGES,
    "fedyogi": IMAGES,
    "fednova": IMAGES,
    "qfedavg": IMAGES,
    "moon": IMAGES,
    # Several models on the server; clients keep the number of the one that they chose.
    "ifca": IMAGES,
    "clustered": {**IMAGES, "method__quiet_rounds": 1, "method__small_mean": 1e9, "method__large_update": 0.0},
    "feddyn": {**IMAGES, "schedule__sampling_rate": 0.5},
    # A state on the server and one in every client, of which half take part.
    "scaffold": {**IMAGES, "schedule__local_epochs": 2, "schedule__sampling_rate": 0.5},
    # Trained models stay on the workers until they are judged there.
    "fedpac": {**IMAGES, "evaluation__decompose_every": 2},
    "fedper": {**IMAGES, "schedule__local_epochs": 2},
    "fedrep": {**IMAGES, "schedule__local_epochs": 2, "method__head_epochs": 2},
    "fedbabu": {**IMAGES, "schedule__local_epochs": 2},
    "pfedme": {**IMAGES, "schedule__local_epochs": 2},
    "fedproto": {**IMAGES, "schedule__local_epochs": 2},
    "fedala": {**IMAGES, "schedule__local_epochs": 2},
    "perfedavg": {**IMAGES, "schedule__local_epochs": 2},
    # A whole model in every client, of which half take part.
    "ditto": {
        **IMAGES,
        "schedule__local_epochs": 2,
        "schedule__sampling_rate": 0.5,
        "evaluation__decompose_every": 2,
    },
    "fedbn": {**IMAGES, "model__name": "mobilenet", "model__width": 0.1, "schedule__local_epochs": 1},
    # Clients of different width and class count, and their spectra computed by remote tasks.
    "fedssp": {**GRAPHS, "model__hidden": 16},
    "gcfl": {**GRAPHS, "method__quiet_rounds": 1, "method__small_mean": 1e9, "method__large_update": 0.0},
    "fgssl": GRAPHS,
    "fedstar": GRAPHS,
    # Clients judge the global model again after training it, each with a head of its own.
    "fedsage": {**GRAPHS, "evaluation__fine_tune": 1},
    "apple": {**GRAPHS, "model__name": "gin"},
    "fedcp": {**GRAPHS, "model__name": "gin"},
    # A model for each client on the server, and statistics of its graph with each update; masks that clients keep.
    "fedgta": NODES,
    "fedgcn": NODES,
    "fedtad": {**NODES, "method__nodes": 8, "method__epochs": 1},
    "fedpub": {**NODES, "method__proxies": 1},
    # Clients keep generated neighbors, on which they are judged.
    "fedsageplus": {**NODES, "method__width": 8, "method__generator_epochs": 3},
    # Networks that clients keep after the first round, from which on the averaged model stays.
    "adafgl": {**NODES, "method__federated_rounds": 1, "method__width": 8},
}


def options(method: str) -> dict[str, Any]:
    return METHODS.get(method) or {"method__name": method, **OTHERS[method]}


_UNDISTURBED: dict[str, dict[str, Any]] = {}


def quick(method: str) -> dict[str, Any]:
    """The method's run with client tasks that last no longer than they must, and a digest of all that they give."""
    few = {} if "workload__name" in options(method) else {"workload__limit": 400}
    short = {} if method in METHODS else {"schedule__local_epochs": 1}
    return {**options(method), **few, **short, "engine__proof": "clients"}


def undisturbed(make_config: MakeConfig, method: str) -> dict[str, Any]:
    """What the method's quick run gives in this process, computed once for all tests."""
    if method not in _UNDISTURBED:
        config = make_config(f"{method}-inline", engine__backend="inline", **quick(method))
        _UNDISTURBED[method] = fingerprint(run(config).folder)
    return _UNDISTURBED[method]


def driven_here(config: RunConfig, observer: Observer) -> None:
    """A run on Ray whose driver is this process: an actor for it would take longer than the run."""
    folder, early = prepare(config), EarlyActors(config.engine, useful_actors(config))
    assert drive(config, folder, partial(early.pool, config), observer, lambda: False, RayParallel()) == "finished"


class Lender:
    """Client actors that are there: starting them, and a driver, would take far longer than such a run.

    Each is given the run's settings and data by ``prepare``, as a new one would be. One that dies is replaced.
    """

    def __init__(self) -> None:
        self._actors: list[Any] = []

    def __enter__(self) -> Lender:
        """On a Ray of three cores, unless there is one."""
        if not ray.is_initialized():
            patiently(partial(ray.init, "local", num_cpus=3, include_dashboard=False, log_to_driver=False))
        return self

    def run(self, config: RunConfig, actors: int, *, dies: bool = False) -> dict[str, Any]:
        """A run on this number of actors, driven by this process; if asked for, one of them dies in round 2."""
        engine = replace(config.engine, actors=actors, cpus_per_client=0.5)  # the rest is for tasks before the rounds
        config = replace(config, engine=engine)
        lender = self

        class Lent(RayPool):
            def close(self) -> None:
                for slot in self._slots:
                    if slot.actor is not None and not slot.jobs:
                        if slot.coming is not None:  # a short run may end before an actor has started
                            ray.get(slot.coming)
                        lender._actors.append(slot.actor)
                        slot.actor = None
                super().close()

        def pool(federation: Federation, useful: int) -> RayPool:
            placement = place(config.engine, [dict(ray.cluster_resources())], useful)
            assert placement.actors == actors
            given, self._actors = self._actors[:actors], self._actors[actors:]
            return Lent(config, federation, placement, useful, MortalStarter(config.engine), given)

        folder, watch = prepare(config), Watch()
        if dies:
            sentence(config).touch()
        assert drive(config, folder, pool, watch, lambda: False, RayParallel()) == "finished"
        assert not sentence(config).exists()
        assert any(" died during round 2" in note for note in watch.notes) == dies, watch.notes
        return fingerprint(folder)

    def __exit__(self, *error: object) -> None:
        for actor in self._actors:
            ray.kill(actor)
