"""The result of every method is a function of its config: in this process = on any number of actors = with one dead.

All on actors that are lent; test_faults.py kills actors and drivers at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raysim.running.simulation import run
from tests.actors.runs import GRAPHS, IMAGES, METHODS, OTHERS, Lender, options, quick, undisturbed
from tests.fingerprint import fingerprint
from tests.long_tests import long
from tests.made_subgraphs import rings
from tests.raysim.scaffold import FOUR_ROUNDS
from tests.small_runs import MakeConfig, small_run
from tests.test_own_data_examples import molecules
from tests.workloads.huggingface.saved import pets, save_splits
from tests.wrapped_runs import BASE, WRAPPED


@pytest.fixture(scope="module")
def lender(ray_session: None) -> Iterator[Lender]:
    with Lender() as lender:
        yield lender


# The engine does a dead actor's work again in the same way whatever the method; these differ in what is done again: a
# model alone, a server state with late joiners, client states, two phases, statistics of graphs, clusters.
KILLED = (*METHODS, "fedpac", "fedssp", "gcfl")
# Each differs from one that is run every time in its local loss, in its part that stays or in the server's step alone.
ALIKE = (
    "fedadagrad",
    "fedala",
    "fedavgm",
    "fedbabu",
    "fedcp",
    "fedper",
    "fedsage",
    "fedyogi",
    "fgssl",
    "moon",
    "pfedme",
)
REST = [method for method in OTHERS if method not in KILLED]


@pytest.mark.parametrize("method", [pytest.param(name, marks=long if name in ALIKE else ()) for name in REST])
def test_on_three_actors(lender: Lender, make_config: MakeConfig, method: str) -> None:
    assert lender.run(make_config("three", **quick(method)), 3) == undisturbed(make_config, method)


@pytest.mark.parametrize("method", KILLED)
def test_on_three_actors_of_which_one_dies(lender: Lender, make_config: MakeConfig, method: str) -> None:
    assert lender.run(make_config("three", **quick(method)), 3, dies=True) == undisturbed(make_config, method)


def test_every_method_is_among_these() -> None:
    from raysim.config.registry import known

    assert set(METHODS) | set(OTHERS) == set(known("method"))


@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_actors_gives_the_same_bits(lender: Lender, make_config: MakeConfig, method: str) -> None:
    expected = undisturbed(make_config, method)
    for actors in (1, 2):
        assert lender.run(make_config(f"{method}-{actors}", **quick(method)), actors) == expected


KEPT: dict[str, dict[str, Any]] = {
    "two phases": {**IMAGES, "method__name": "fedpac", "training__optimizer": "adam"},
    "clients of different tasks": {**GRAPHS, "method__name": "fedavg", "model__name": "gin"},
}


@pytest.mark.parametrize("case", KEPT)
def test_kept_moments_give_the_same_bits_on_two_actors(lender: Lender, make_config: MakeConfig, case: str) -> None:
    options = {**KEPT[case], "training__optimizer_state": "kept"}
    expected = fingerprint(run(make_config("inline", engine__backend="inline", **options)).folder)
    assert lender.run(make_config("on-two", **options), 2) == expected


IN_VIRTUAL_TIME: dict[str, dict[str, Any]] = {
    "buffered": {**options("scaffold"), "timing__buffer": 2, "timing__concurrency": 4},
    "async": {**IMAGES, "schedule__local_epochs": 2, "method__name": "ifca", "schedule__rounds": 6},
    "deadline": {**options("fedrad"), "model__name": "mlp", "schedule__local_epochs": 20, "timing__deadline": 200.0},
}


@pytest.mark.parametrize("mode", IN_VIRTUAL_TIME)
def test_virtual_time_gives_the_same_bits_when_an_actor_dies(
    lender: Lender, make_config: MakeConfig, mode: str
) -> None:
    options = {**IN_VIRTUAL_TIME[mode], "timing__mode": mode, "devices__preset": "phones"}
    expected = fingerprint(run(make_config("inline", engine__backend="inline", **options)).folder)
    assert lender.run(make_config("dies", **options), 3, dies=True) == expected


# Codecs, noise and rules, client states around the method's own, virtual time: between them all of what wrappers keep.
ON_RAY = (
    "top-k, attack and defense",
    "adaptive central noise, int8 both ways, sign flips",
    "adaptive central noise, Poisson cohorts, top-k down",
    "a rule, in virtual time",
    "low-rank with fed-back errors, top-k down",
    "low-rank with fed-back errors, int8 down, in virtual time",
    "backdoor and defense",
)


@pytest.mark.parametrize("name", ON_RAY)
def test_wrappers_give_the_same_bits_when_an_actor_dies(lender: Lender, tmp_path: Path, name: str) -> None:
    inline = run(small_run(tmp_path / "inline", BASE, **WRAPPED[name]))
    on_ray = small_run(tmp_path / "ray", BASE, **WRAPPED[name], engine__backend="ray")
    assert lender.run(on_ray, 3, dies=True) == fingerprint(inline.folder)


def _nodes(folder: Path) -> dict[str, Any]:
    return {"workload__name": "nodes", "workload__path": rings(folder), "model__name": "gcn", "model__hidden": 4}


def _huggingface(folder: Path) -> dict[str, Any]:
    path = save_splits({"train": pets(40, 0)[0], "test": pets(8, 1)[0]}, folder / "pets")
    return {"workload__name": "huggingface", "workload__path": str(path), "model__name": "mlp"}


def _own_graph_model(folder: Path) -> dict[str, Any]:
    molecules(folder)
    data = {"workload__sets": ("BONDS",), "workload__path": str(folder), "workload__parts": 2}
    return {"workload__name": "tudataset", **data, "workload__clients": None, "model__name": "examples.own_graphs:Net"}


@pytest.mark.parametrize("data", [_nodes, _huggingface, _own_graph_model])
def test_data_of_every_kind_gives_the_same_bits_when_an_actor_dies(
    lender: Lender, tmp_path: Path, data: Callable[[Path], dict[str, Any]]
) -> None:
    base = {"workload__clients": 2, "workload__partition": "iid", "schedule__rounds": 3, **data(tmp_path)}
    expected = fingerprint(run(small_run(tmp_path / "inline", {}, **base)).folder)
    assert lender.run(small_run(tmp_path / "ray", {}, **base, engine__backend="ray"), 2, dies=True) == expected
    run(small_run(tmp_path / "parts", {}, **{**base, "schedule__rounds": 1}))
    assert fingerprint(run(small_run(tmp_path / "parts", {}, **base), resume=tmp_path / "parts").folder) == expected


MERGED: dict[str, Any] = {
    "workload__clients": 70,
    "workload__min_samples": 2,
    "workload__limit": 1400,
    "schedule__rounds": 2,
    "schedule__local_epochs": 1,
    "model__name": "mlp",
    "evaluation__client_limit": 1,
}


def test_merged_single_steps_give_the_same_bits_on_any_number_of_actors(
    lender: Lender, make_config: MakeConfig
) -> None:
    apart = make_config("apart", engine__backend="inline", engine__merge_single_steps=False, **MERGED)
    expected = fingerprint(run(make_config("inline", engine__backend="inline", **MERGED)).folder)
    assert expected != fingerprint(run(apart).folder)  # it is another program, whose last bits differ
    assert lender.run(make_config("on-1", **MERGED), 1) == expected
    assert lender.run(make_config("on-3", **MERGED), 3, dies=True) == expected


def test_what_a_method_is_told_of_the_population_is_the_same_on_ray(lender: Lender, tmp_path: Path) -> None:
    joins = {"schedule__joins": (2, 2), "schedule__join_every": 2}
    inline = run(small_run(tmp_path / "inline", FOUR_ROUNDS, **joins))
    on_ray = small_run(tmp_path / "ray", FOUR_ROUNDS, **joins, engine__backend="ray")
    assert lender.run(on_ray, 2) == fingerprint(inline.folder)
    assert inline.rounds["control"].tolist() == [0.0, -1.0, 0.0, -1.75]
