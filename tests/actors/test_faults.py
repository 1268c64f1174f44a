"""Faults on a cluster of several raylets: the result is bit for bit that of the undisturbed run."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from actors.early_actors import EarlyActors
from actors.parallel_map import RayParallel
from actors.start_retry import patiently
from raysim.config.run_config import RunConfig
from raysim.driver import drive
from raysim.preparation import prepare
from raysim.simulation import run
from tests.fingerprint import fingerprint
from tests.processes import parent, processes, within
from tests.small_runs import MakeConfig
from tests.watch import Watch

pytestmark = pytest.mark.slow
AT_WORK = "ray::train[round"
QUICK_DEATH = {  # a raylet that does not answer is dead after a few seconds instead of twenty
    "health_check_initial_delay_ms": 5000,  # a node that starts on a busy machine is not dead
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 6,
}


class Machines:
    """A head without a core for clients, and workers with one each."""

    def __init__(self) -> None:
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK_DEATH}
        self.cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.workers: list[Any] = []

    def add(self) -> None:
        self.workers.append(patiently(lambda: self.cluster.add_node(num_cpus=1)))

    def kill(self, worker: int = -1) -> None:
        """As a machine whose power fails."""
        self.cluster.remove_node(self.workers.pop(worker), allow_graceful=False)

    def number(self, count: int) -> None:
        while len(self.workers) < count:
            self.add()
        while len(self.workers) > count:
            self.kill()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    """In the place of the session's Ray, which a process can have one of."""
    ray.shutdown()
    folder = tempfile.mkdtemp(prefix="ray-")  # not /tmp/ray, where every new Ray would find and join this cluster
    before = os.environ.get("RAY_TMPDIR")
    os.environ["RAY_TMPDIR"] = folder
    # All nodes alike, also those that join after a run has asked for tokens in this process.
    mode_was_set = "RAY_AUTH_MODE" in os.environ
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    machines = Machines()
    try:
        ray.init(address=machines.cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        yield machines
    finally:
        ray.shutdown()
        machines.cluster.shutdown()
        del os.environ["RAY_TMPDIR"]
        if not mode_was_set:
            del os.environ["RAY_AUTH_MODE"]
        if before is not None:
            os.environ["RAY_TMPDIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def machines(cluster: Machines) -> Machines:
    cluster.number(2)
    return cluster


class Going(Watch):
    """A run that goes on in a thread, while the test makes faults; an observer that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path()
        self.on_round: Callable[[], None] = lambda: None
        self._changed = threading.Condition()

    def round_started(self, round: int, local_epochs: int, participants: int) -> None:
        with self._changed:
            self.round = round
            self._changed.notify_all()
        self.on_round()

    def note(self, text: str) -> None:
        with self._changed:
            self.notes.append(text)
            self._changed.notify_all()

    def fault(self, text: str) -> None:
        with self._changed:
            self.faults.append(text)
            self._changed.notify_all()

    def wait_for_round(self, round: int) -> None:
        self._wait(lambda: self.round >= round)

    def wait_for_plan(self, text: str) -> None:
        self._wait(lambda: any(text in note for note in self.notes))

    def wait_for_fault(self, text: str) -> None:
        self._wait(lambda: any(text in fault for fault in self.faults))

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 90), (self.round, self.faults)


def driven_here(config: RunConfig, observer: Going) -> Path:
    """The folder of a run whose driver is this process: an actor for it would take longer than the run."""
    folder, early = prepare(config), EarlyActors(config)
    assert drive(config, folder, early.pool, observer, lambda: False, RayParallel()) == "finished"
    return folder


@contextmanager
def going(config: RunConfig, launch: Callable[[RunConfig, Going], Path] = driven_here) -> Iterator[Going]:
    """A run; at the end of the block it is waited for."""
    watch = Going()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            watch.folder = launch(config, watch)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield watch
    finally:
        thread.join(200)
    assert not thread.is_alive() and not failed, (failed, watch.faults)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def an_actor_at_work(choose: Callable[[list[int]], int] = min, worker: Any = None) -> int:
    """An actor in a client task, on any node or on this worker."""
    raylet = None if worker is None else raylet_of(worker)
    found: list[int] = []

    def look() -> list[int]:
        found[:] = [process for process in processes(AT_WORK) if raylet in (None, parent(process))]
        return found

    wait_until(look)
    return choose(found)


def raylet_of(worker: Any) -> int:
    return int(worker.all_processes["raylet"][0].process.pid)


@pytest.fixture
def undisturbed(make_config: MakeConfig) -> Callable[..., dict[str, Any]]:
    def compute(**options: Any) -> dict[str, Any]:
        return fingerprint(run(make_config("inline", engine__backend="inline", **options)).folder)

    return compute


def test_a_client_actor_killed_in_a_client_task_of_every_round(
    machines: Machines, make_config: MakeConfig, undisturbed: Any
) -> None:
    rounds = 3
    options = {"schedule__rounds": rounds, "schedule__local_epochs": 1, "evaluation__every": rounds}
    expected = undisturbed(**options)
    choice = random.Random(0)
    killed = []

    def kill_one() -> None:
        process = an_actor_at_work(choice.choice)
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    with going(make_config("killed", **options)) as found:
        for number in range(1, rounds + 1):
            found.wait_for_round(number)
            kill_one()
    assert len(set(killed)) == rounds
    assert fingerprint(found.folder) == expected


def test_a_worker_killed_in_a_round_and_one_that_joins(
    machines: Machines, make_config: MakeConfig, undisturbed: Any, tmp_path: Path
) -> None:
    options = {"method__name": "tests.raysim.user_code:Waiting", "method__first": 1}
    options |= {"model__name": "mlp", "schedule__rounds": 3}
    open_gates, gates = tmp_path / "open", tmp_path / "gates"
    for folder in (open_gates, gates):
        folder.mkdir()
    for number in ("1", "2", "3"):
        (open_gates / number).touch()
    expected = undisturbed(**options, method__gate=f"{open_gates}/{{}}")
    with going(make_config("killed", **options, method__gate=f"{gates}/{{}}")) as found:
        found.wait_for_round(1)
        an_actor_at_work(worker=machines.workers[-1])
        machines.kill()
        machines.number(3)
        (gates / "1").touch()
        found.wait_for_plan("3 client actors")
        (gates / "2").touch()
        wait_until(lambda: len(processes(AT_WORK)) == 3)
        (gates / "3").touch()
    assert fingerprint(found.folder) == expected
    # Its actor may be missed before its node is; or only the result, if it had just sent one.
    assert any("does its work again" in fault or "is done again" in fault for fault in found.faults)
    plan = "3 client actors, 1 CPU each, serve 6 clients"
    status = json.loads((found.folder / "status.json").read_text())
    assert status["plan"] == plan and len(status["slots"]) == 3
    assert plan in (found.folder / "run.log").read_text()


def test_the_node_that_held_client_states_killed(machines: Machines, make_config: MakeConfig, undisturbed: Any) -> None:
    options = {"method__name": "local", "schedule__rounds": 12, "engine__checkpoint_every": 4}
    expected = undisturbed(**options)
    with going(make_config("killed", **options)) as found:
        found.wait_for_round(1)
        an_actor_at_work(worker=machines.workers[-1])
        found.wait_for_round(max(6, found.round + 1))
        machines.kill()
        found.wait_for_fault("the run goes on from the checkpoint of round")
    assert fingerprint(found.folder) == expected


def test_the_driver_killed(machines: Machines, make_config: MakeConfig, undisturbed: Any) -> None:
    """Of a method with a state on the server and one in every client."""
    options = {"method__name": "scaffold", "schedule__sampling_rate": 0.5}
    expected = undisturbed(**options)
    with going(make_config("killed", **options), lambda config, watch: run(config, observer=watch).folder) as found:
        found.wait_for_round(3)
        (driver,) = processes("ray::DriverActor")
        os.kill(driver, signal.SIGKILL)
        found.wait_for_fault("the driver died; a new one goes on from the last checkpoint")
        found.wait_for_plan("goes on after round")
    assert fingerprint(found.folder) == expected


def test_all_workers_gone_for_a_while(machines: Machines, make_config: MakeConfig, undisturbed: Any) -> None:
    expected = undisturbed()
    with going(make_config("gone")) as found:
        found.wait_for_round(2)
        machines.number(0)
        found.wait_for_fault("on a node with room for 1 CPU (the cluster has 1 node with 0 CPU")
        reached = found.round
        time.sleep(1.0)
        assert found.round == reached < 5  # nothing is made up meanwhile
        machines.number(1)
        found.wait_for_fault("goes on with 1 client actor")
    assert fingerprint(found.folder) == expected


def test_a_frozen_actor_past_the_deadline(machines: Machines, make_config: MakeConfig, undisturbed: Any) -> None:
    expected = undisturbed()
    with going(make_config("frozen", engine__task_deadline=4.0)) as found:
        found.wait_for_round(2)
        frozen = an_actor_at_work()
        os.kill(frozen, signal.SIGSTOP)
        found.wait_for_fault("did not answer within 4 s during round")
    assert fingerprint(found.folder) == expected
    # Ray waits five seconds before it kills what does not end by itself.
    assert within(20, lambda: not Path(f"/proc/{frozen}").exists(), pause=0.1)


def test_a_frozen_node(machines: Machines, make_config: MakeConfig, undisturbed: Any) -> None:
    expected = undisturbed(schedule__rounds=12)
    with going(make_config("frozen", schedule__rounds=12)) as found:
        found.wait_for_round(1)
        an_actor_at_work(worker=machines.workers[-1])
        raylet = raylet_of(machines.workers[-1])
        held = [raylet, *(process for process in processes("ray::") if parent(process) == raylet)]
        for process in held:
            os.kill(process, signal.SIGSTOP)
        found.wait_for_fault("with its node")
    assert fingerprint(found.folder) == expected
    for process in held:
        os.kill(process, signal.SIGKILL)
    machines.kill()
