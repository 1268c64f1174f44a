"""The result of a run is a function of its config: inline = Ray with 1 and 3 actors = killed = stopped and resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raysim.config import RunConfig
from raysim.observer import Silent
from raysim.simulation import execute, prepare, run
from tests.fingerprint import fingerprint

sys.path.insert(0, str(Path(__file__).parent))
from conftest import Killer

MakeConfig = Callable[..., RunConfig]
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {"method__name": "fedavg"},
    # Sampling, late joiners, random intervals and NeuNet's memory of the last round, all at once.
    "fedrad": {
        "method__name": "fedrad",
        "schedule__sampling_rate": 0.7,
        "schedule__joins": (2, 2, 2),
        "schedule__join_every": 2,
    },
    # State that stays with clients between their visits.
    "local": {"method__name": "local", "schedule__sampling_rate": 0.5},
}
GRAPHS = {
    "workload__name": "toy-graphs",
    "workload__clients": 4,
    "workload__graphs_per_client": 60,
    "training__batch_size": 8,
    "schedule__rounds": 3,
}
IMAGES = {"schedule__rounds": 3, "model__name": "mlp", "schedule__local_epochs": 20}
# Every other method in one run each, with all that could disturb it at once: three actors, of which one is killed.
OTHERS: dict[str, dict[str, Any]] = {
    "fedprox": IMAGES,
    "centralized": IMAGES,
    "fedld": IMAGES,
    "fedgh": IMAGES,
    "fedpac": IMAGES,
    "fedbn": {**IMAGES, "model__name": "mobilenet", "model__width": 0.1, "schedule__local_epochs": 1},
    # Clients of different width and class count, and their spectra computed by remote tasks.
    "fedssp": {**GRAPHS, "model__hidden": 16},
    "gcfl": {**GRAPHS, "method__quiet_rounds": 1, "method__small_mean": 1e9, "method__large_update": 0.0},
    "fgssl": GRAPHS,
    "fedstar": GRAPHS,
    "fedsage": GRAPHS,
    "apple": {**GRAPHS, "model__name": "gin"},
    "fedcp": {**GRAPHS, "model__name": "gin"},
}


def options(method: str) -> dict[str, Any]:
    return METHODS.get(method) or {"method__name": method, **OTHERS[method]}


def undisturbed(make_config: MakeConfig, method: str) -> dict[str, Any]:
    config = make_config(f"{method}-inline", engine__backend="inline", **options(method))
    return fingerprint(run(config).folder)


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("method", OTHERS)
def test_every_other_method_on_three_actors_of_which_one_is_killed(make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    killer = Killer("ray::train[round", round=2)
    found = run(make_config(f"{method}-killed", engine__actors=3, **options(method)), observer=killer)
    assert killer.killed
    assert fingerprint(found.folder) == expected


def test_every_method_is_among_these() -> None:
    from raysim.registry import known

    assert set(METHODS) | set(OTHERS) == set(known("method"))


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_actors_gives_the_same_bits(make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    for actors in (1, 3):
        config = make_config(f"{method}-{actors}", engine__actors=actors, **options(method))
        assert fingerprint(run(config).folder) == expected


@pytest.mark.usefixtures("ray_session")
def test_clients_that_train_together_give_the_same_bits_on_any_number_of_actors(make_config: MakeConfig) -> None:
    options = {"method__name": "fedprox", "engine__vectorise": 2, "schedule__rounds": 3, "model__name": "mlp"}
    alone = fingerprint(
        run(make_config("alone", engine__backend="inline", **options | {"engine__vectorise": 0})).folder
    )
    expected = fingerprint(run(make_config("inline", engine__backend="inline", **options)).folder)
    assert expected != alone  # it is another program, whose last bits differ
    for actors in (1, 3):
        assert fingerprint(run(make_config(f"on-{actors}", engine__actors=actors, **options)).folder) == expected


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("method", METHODS)
def test_a_client_actor_killed_in_a_visit_changes_nothing(make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    killer = Killer("ray::train[round", round=2)
    found = run(make_config(f"{method}-killed", engine__actors=2, **options(method)), observer=killer)
    assert killer.killed
    assert any(" died during round" in note for note in killer.notes)
    assert fingerprint(found.folder) == expected


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("method", METHODS)
def test_the_driver_killed_goes_on_from_its_checkpoint_by_itself(make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    killer = Killer("ray::DriverActor", round=3)
    found = run(make_config(f"{method}-driver", engine__actors=2, **options(method)), observer=killer)
    assert killer.killed
    assert any("the driver died" in note for note in killer.notes)
    assert any("goes on after round" in note for note in killer.notes)
    assert fingerprint(found.folder) == expected


class RoundCounter(Silent):
    def __init__(self) -> None:
        self.started = 0

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        self.started = round


@pytest.mark.parametrize("method", METHODS)
def test_stopped_in_a_round_and_resumed_gives_the_same_bits(make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    # Checkpoints further apart than the stop: it is the stop itself that must save the last whole round.
    config = make_config(f"{method}-stopped", engine__backend="inline", engine__checkpoint_every=100, **options(method))
    folder = prepare(config)
    counter = RoundCounter()
    outcome = execute(config, folder, counter, stopping=lambda: counter.started == 3)
    assert outcome.status == "stopped"
    assert not (folder / "summary.json").exists()
    assert fingerprint(run(config, resume=folder).folder) == expected


@pytest.mark.usefixtures("ray_session")
def test_a_run_on_ray_stops_between_visits_and_resumes_inline(make_config: MakeConfig) -> None:
    expected = undisturbed(make_config, "fedrad")
    config = make_config("fedrad-both", engine__actors=2, **METHODS["fedrad"])
    folder = prepare(config)
    counter = RoundCounter()
    assert execute(config, folder, counter, stopping=lambda: counter.started >= 3).status == "stopped"
    inline = make_config("fedrad-both", engine__backend="inline", **METHODS["fedrad"])
    assert fingerprint(run(inline, resume=folder).folder) == expected
