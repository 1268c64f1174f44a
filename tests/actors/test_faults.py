"""Faults on a cluster of several raylets: the result is bit for bit that of the undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from raysim.config.run_config import RunConfig
from raysim.running.simulation import run
from tests.actors.clusters import actors_of, add_node, cluster_here
from tests.actors.runs import driven_here
from tests.fingerprint import fingerprint
from tests.long_tests import long
from tests.processes import processes, within
from tests.small_runs import MakeConfig
from tests.watch import Watch

pytestmark = pytest.mark.slow
AT_WORK = "ray::train[round"
PATIENCE = 200
"""Seconds for what must come: tests wait for it and not for a clock, and a machine may be slow."""
QUICK_DEATH = {  # a raylet that does not answer is dead after a few seconds instead of twenty
    "health_check_initial_delay_ms": 5000,  # a node that starts on a busy machine is not dead
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 6,
}


class Machines:
    """The workers of a cluster, with a core each."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.workers: list[Any] = []

    def kill(self, worker: int = -1) -> None:
        """As a machine whose power fails."""
        self.cluster.remove_node(self.workers.pop(worker), allow_graceful=False)

    def number(self, count: int) -> None:
        """Add or kill workers until there are ``count``, and wait until Ray counts no dead one, as a plan would."""
        while len(self.workers) < count:
            self.workers.append(add_node(self.cluster, num_cpus=1))
        while len(self.workers) > count:
            self.kill()
        assert within(PATIENCE, lambda: sum(node["Alive"] for node in ray.nodes()) == 1 + count, pause=0.05)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    with cluster_here(num_cpus=0, _system_config=QUICK_DEATH) as made:
        yield Machines(made)


@pytest.fixture
def machines(cluster: Machines) -> Machines:
    cluster.number(2)
    return cluster


class Going(Watch):
    """A run that goes on in a thread, while the test makes faults; an observer that can be waited for."""

    def wait_for_round(self, round: int) -> None:
        self._wait(lambda: self.round >= round)

    def wait_for(self, text: str) -> None:
        """Wait for a note or a fault."""
        self._wait(lambda: any(text in note for note in self.notes))

    def _wait(self, condition: Callable[[], bool]) -> None:
        assert within(PATIENCE, condition, pause=0.005), (self.round, self.notes)


@contextmanager
def going(config: RunConfig, launch: Callable[[RunConfig, Going], object] = driven_here) -> Iterator[Going]:
    """A run; at the end of the block it is waited for, and has the result of an undisturbed one in this process."""
    watch = Going()
    running = ThreadPoolExecutor(1).submit(launch, config, watch)
    try:
        yield watch
    finally:
        wait([running], PATIENCE)
    running.result(0)
    inline = replace(config.engine, backend="inline")
    undisturbed = run(replace(config, engine=inline, output=f"{config.output}-undisturbed"))
    assert fingerprint(Path(config.output)) == fingerprint(undisturbed.folder)


class Gates:
    """Client tasks wait, from a round on, until the test opens their round: what must happen in it does.

    Without one a run may be over before the actor of some node is up at all.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def method(self, name: str, first: int) -> dict[str, Any]:
        """Options of a method of tests/raysim/user_code.py that waits from round ``first`` on."""
        own = {"name": f"tests.raysim.user_code:{name}", "gate": f"{self._folder}/{{}}", "first": first}
        return {f"method__{option}": value for option, value in own.items()}

    def open(self, *rounds: int) -> None:
        for round in rounds:
            (self._folder / str(round)).touch()

    @contextmanager
    def open_at_the_end(self) -> Iterator[None]:
        """All of them, however the block ends: the run is waited for."""
        try:
            yield
        finally:
            self.open(*range(1, 20))


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path / "gates")


def an_actor_at_work(choose: Callable[[list[int]], int] = min, worker: Any = None, round: int | str = "") -> int:
    """An actor in a client task of any round or this one, on any node or on this worker."""

    def at_work() -> list[int]:
        found = processes(f"{AT_WORK} {round}")
        return found if worker is None or not found else sorted(actors_of(worker).intersection(found))

    return choose(within(PATIENCE, at_work, pause=0.002))


def test_a_client_actor_killed_in_a_client_task_of_every_round(
    machines: Machines, make_config: MakeConfig, gates: Gates
) -> None:
    # The second is that of a node manager or a batch system, which Ray's own workers take for an error of the task.
    signals = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
    rounds = len(signals)
    options = {"schedule__rounds": rounds, "schedule__local_epochs": 1, "evaluation__every": rounds}
    choice, killed = random.Random(0), []
    with going(make_config("killed", **gates.method("Waiting", first=1), **options)), gates.open_at_the_end():
        for number, deadly in enumerate(signals, start=1):
            killed.append(an_actor_at_work(choice.choice, round=number))
            os.kill(killed[-1], deadly)
            gates.open(number)
    assert len(set(killed)) == rounds


def test_a_worker_killed_in_a_round_and_one_that_joins(
    machines: Machines, make_config: MakeConfig, tmp_path: Path, gates: Gates
) -> None:
    folder, options = tmp_path / "killed", gates.method("Waiting", first=1) | {"model__name": "mlp"}
    with (
        going(make_config("killed", **options, schedule__rounds=3)) as found,
        gates.open_at_the_end(),
    ):
        an_actor_at_work(worker=machines.workers[-1], round=1)
        machines.number(1)
        machines.number(3)
        gates.open(1)
        found.wait_for("3 client actors")
        gates.open(2)
        assert within(PATIENCE, lambda: len(processes(f"{AT_WORK} 3")) == 3, pause=0.002)
    # Its actor may be missed before its node is; or only the result, if it had just sent one.
    assert any("does its work again" in fault or "is done again" in fault for fault in found.faults)
    plan = "3 client actors, 1 CPU each, serve 6 clients"
    status = json.loads((folder / "status.json").read_text())
    assert status["plan"] == plan and len(status["slots"]) == 3
    assert plan in (folder / "run.log").read_text()


def test_the_node_that_held_client_states_killed(cluster: Machines, make_config: MakeConfig, gates: Gates) -> None:
    """All states are on one node, then another joins: what it has fetched by the time of the death are a few.

    With two nodes from the start each may have fetched what the other has trained, and nothing need be lost.
    """
    cluster.number(1)
    options = {**gates.method("WaitingLocal", first=4), "schedule__rounds": 6, "engine__checkpoint_every": 3}
    with going(make_config("killed", **options)) as found, gates.open_at_the_end():
        found.wait_for_round(4)
        cluster.number(2)
        gates.open(4)
        found.wait_for_round(5)
        cluster.kill(0)
        gates.open(5)
        found.wait_for("the run goes on from the checkpoint of round 3")


@long  # tests/actors/test_own_data.py kills one in every run of the suite
def test_the_driver_killed(machines: Machines, make_config: MakeConfig) -> None:
    """Of a method with a state on the server and one in every client."""
    options = {"method__name": "scaffold", "schedule__sampling_rate": 0.5}
    with going(make_config("killed", **options), lambda config, watch: run(config, observer=watch)) as found:
        found.wait_for_round(3)
        (driver,) = processes("ray::DriverActor")
        os.kill(driver, signal.SIGKILL)
        found.wait_for("the driver died; a new one goes on from the last checkpoint")
        found.wait_for("goes on after round")


@long
def test_all_workers_gone_for_a_while(machines: Machines, make_config: MakeConfig) -> None:
    with going(make_config("gone")) as found:
        found.wait_for_round(2)
        machines.number(0)
        found.wait_for("on a node with room for 1 CPU (the cluster has 1 node with 0 CPU")
        reached = found.round
        time.sleep(1.0)
        assert found.round == reached < 5  # nothing is made up meanwhile
        machines.number(1)
        found.wait_for("goes on with 1 client actor")


def test_a_frozen_actor_past_the_deadline(machines: Machines, make_config: MakeConfig) -> None:
    with going(make_config("frozen", engine__task_deadline=4.0)) as found:
        found.wait_for_round(2)
        frozen = an_actor_at_work()
        os.kill(frozen, signal.SIGSTOP)
        found.wait_for("did not answer within 4 s during round")
    # Ray waits five seconds before it kills what does not end by itself.
    assert within(PATIENCE, lambda: not Path(f"/proc/{frozen}").exists(), pause=0.1)


@long  # a frozen actor is next to it
def test_a_frozen_node(machines: Machines, make_config: MakeConfig, gates: Gates) -> None:
    options = gates.method("Waiting", first=2) | {"model__name": "mlp"}
    with (
        going(make_config("frozen", **options, schedule__rounds=3)) as found,
        gates.open_at_the_end(),
    ):
        an_actor_at_work(worker=machines.workers[-1], round=2)
        raylet = machines.workers[-1].all_processes["raylet"][0].process.pid
        held = [raylet, *actors_of(machines.workers[-1])]
        for process in held:
            os.kill(process, signal.SIGSTOP)
        found.wait_for("with its node")
    for process in held:
        os.kill(process, signal.SIGKILL)
    machines.kill()
