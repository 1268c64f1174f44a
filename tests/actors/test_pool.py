"""The Ray pool: jobs come back once each whatever happens to their actors."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import ray
from ray import cloudpickle

from raysim.actors.capacity import Placement
from raysim.actors.pool import RayPool
from raysim.config.run_config import Engine, RunConfig
from raysim.errors import HostMemoryError, PlacementError, RaysimError
from raysim.exchange.pool_protocol import Job
from raysim.exchange.profile_marks import now
from tests.actors.light import Light, LightStarter, processes
from tests.processes import within
from tests.small_runs import with_engine

# Actors cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


ATTEMPTS = Engine().task_attempts


# -- jobs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Echo:
    """Gives ``value`` and a state, and writes a line to ``log`` when it starts and when it ends."""

    value: int
    log: Path
    seconds: float = 0.0
    deaths: int = 0
    """How many times it takes its process with it."""
    fails: bool = False
    hungry: int = 0
    """How many times its process gets no more memory."""

    def run(self, worker: Any, inputs: Any) -> tuple[int, list[Any]]:
        self.note("starts")
        if self.log.read_text().count(f"{self.value} starts") <= self.deaths:
            time.sleep(0.2)  # what this process did before has been said by then
            os._exit(1)
        if self.log.read_text().count(f"{self.value} starts") <= self.hungry:
            raise HostMemoryError("this machine has no main memory left for it")
        if self.fails:
            raise ValueError("this one is wrong")
        time.sleep(self.seconds)
        self.note("ends")
        return self.value, [(self.value, *inputs)]

    def note(self, what: str) -> None:
        with self.log.open("a") as file:
            file.write(f"{self.value} {what}\n")


def all_up(pool: RayPool) -> None:
    """Else the first that is up might do all the work."""
    for reference in list(pool._slots.coming):
        pool._slots.settle(reference, print)


def light_pool(config: RunConfig, clients: int, placement: Placement) -> RayPool:
    return RayPool(config, SimpleNamespace(clients=clients), placement, starter=LightStarter(config.engine))


@contextmanager
def two_actors() -> Iterator[RayPool]:
    made = light_pool(with_engine(cpus_per_client=0.5), 8, Placement(2, 0.5, 0.0))
    all_up(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def lasting(ray_session: None) -> Iterator[RayPool]:
    with two_actors() as made:
        yield made


@pytest.fixture
def pool(lasting: RayPool) -> RayPool:
    """The pool of all tests here: one that has lost actors has others."""
    all_up(lasting)
    return lasting


def jobs(log: Path, count: int, **options: Any) -> list[Job]:
    log.touch()
    special = options.pop("special", 0)
    return [
        # The special one is the longest, so it goes first and another is queued behind it.
        Job(
            Echo(index, log, **(options if index == special else {})),
            (f"input {index}",),
            outputs=1,
            cost=2.0 if index == special else 1.0,
            label=f"job {index}",
        )
        for index in range(count)
    ]


def test_every_job_comes_back_once_with_its_own_state(pool: RayPool, tmp_path: Path) -> None:
    done = list(pool.run(jobs(tmp_path / "log", 9), print))
    assert sorted(d.index for d in done) == list(range(9))
    for d in done:
        assert d.result == d.index and pool.fetch(d.outputs[0]) == (d.index, f"input {d.index}")


def test_of_every_job_it_is_known_which_slot_did_it_and_when(pool: RayPool, tmp_path: Path) -> None:
    before = now()
    done = list(pool.run(jobs(tmp_path / "log", 6, seconds=0.05), print))
    assert {d.seat.slot for d in done} == {0, 1}
    for slot in (0, 1):
        mine = sorted((d for d in done if d.seat.slot == slot), key=lambda d: d.started)
        # One clock for all processes of a machine, and one job of a slot after another.
        assert all(before <= d.sent <= d.started for d in mine)
        assert all(first.started + first.seconds <= second.started for first, second in pairwise(mine))
    assert max(d.started + d.seconds for d in done) <= now()


def test_the_data_are_fetched_from_the_object_store_once(pool: RayPool) -> None:
    """Every row of the table of clients has a name, which the data know."""
    assert pool.federation is pool.federation


def test_what_a_dead_actor_had_is_done_again_and_counts_once(pool: RayPool, tmp_path: Path) -> None:
    notes: list[str] = []
    done = list(pool.run(jobs(tmp_path / "log", 9, deaths=2), notes.append))
    assert sorted(d.index for d in done) == list(range(9))
    assert [pool.fetch(d.outputs[0])[0] for d in done] == [d.result for d in done]
    # It is not the new actor's alone: whichever is up first takes it.
    died = [note.partition(" ")[2] for note in notes if "died" in note]  # on a busy machine it is also told to wait
    assert died == ["died during job 0; a new one does its work again"] * 2


def test_actors_and_calls_have_telling_names(ray_session: None, tmp_path: Path) -> None:
    with two_actors() as pool:
        done = list(pool.run(jobs(tmp_path / "log", 4, deaths=1), print))
        assert {d.index: d.sends for d in done}[0] == 2 and min(d.sends for d in done) == 1
        assert all(d.seat.device == "cpu" for d in done)
        assert {d.seat.process for d in done} <= set(processes(pool))
        names = {entry["name"] for entry in ray.util.list_named_actors(all_namespaces=True)}
        assert {"client-actor-00 (life 2)", "client-actor-01"} <= names
        # Another run on the same cluster has actors of the same names.
        other = light_pool(with_engine(), 1, Placement(1, 0.0, 0.0))
        assert len(processes(other)) == 1
        other.close()


def test_a_job_that_always_kills_its_actor_is_given_up(pool: RayPool, tmp_path: Path) -> None:
    notes: list[str] = []
    with pytest.raises(RaysimError, match=f"job 0: its actor died {ATTEMPTS} times, most likely for want of memory"):
        list(pool.run(jobs(tmp_path / "log", 5, deaths=99), notes.append))
    assert sum(" died during job 0" in note for note in notes) == ATTEMPTS - 1
    # Nothing of it is left in the pool to be counted among the next jobs.
    assert sorted(d.index for d in pool.run(jobs(tmp_path / "log2", 4), print)) == [0, 1, 2, 3]


def test_a_job_that_found_no_memory_is_done_again_by_a_new_actor(pool: RayPool, tmp_path: Path) -> None:
    before = set(processes(pool))
    notes: list[str] = []
    done = list(pool.run(jobs(tmp_path / "log", 5, hungry=1), notes.append))
    assert any("had no memory left (this machine has no main memory" in note for note in notes)
    assert sorted(d.index for d in done) == list(range(5))
    assert {d.index: d.sends for d in done}[0] == 2 and set(processes(pool)) != before
    with pytest.raises(RaysimError, match=f"died {ATTEMPTS} times, .*this machine has no main memory left"):
        list(pool.run(jobs(tmp_path / "log2", 5, hungry=99), print))


def test_how_many_deaths_a_job_survives_is_an_option(ray_session: None, tmp_path: Path) -> None:
    found = light_pool(with_engine(task_attempts=1), 2, Placement(1, 0.0, 0.0))
    with pytest.raises(RaysimError, match=r"(?s)its actor died 1 time, .*raise --engine\.task_attempts"):
        list(found.run(jobs(tmp_path / "log", 2, deaths=1), print))
    found.close()


def test_an_exception_names_the_job_and_carries_its_traceback(pool: RayPool, tmp_path: Path) -> None:
    with pytest.raises(RaysimError) as caught:
        list(pool.run(jobs(tmp_path / "log", 5, fails=True), print))
    assert str(caught.value) == "job 0: ValueError: this one is wrong"
    assert 'raise ValueError("this one is wrong")' in caught.value.traceback


def test_closed_early_nothing_of_it_goes_on(pool: RayPool, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with closing(pool.run(jobs(log, 9, seconds=6.0), print)) as running:
        next(running)
        assert within(240, lambda: "0 starts" in log.read_text())
    time.sleep(7.0)
    assert "0 starts" in log.read_text() and "0 ends" not in log.read_text()
    # And what comes next is not mixed up with it.
    again = list(pool.run(jobs(tmp_path / "log2", 3), print))
    assert sorted(d.result for d in again) == [0, 1, 2]


def test_jobs_that_were_sent_ahead_run_beside_others_until_they_are_asked_for(pool: RayPool, tmp_path: Path) -> None:
    ahead = jobs(tmp_path / "log", 4, deaths=1)
    pool.send_ahead(ahead)
    beside = [done.result for done in pool.run(jobs(tmp_path / "log2", 3), print)]
    assert sorted(beside) == [0, 1, 2]
    found = {done.index: done for done in pool.run([*reversed(ahead[1:]), ahead[0]], print)}
    assert {index: done.result for index, done in found.items()} == {0: 3, 1: 2, 2: 1, 3: 0}
    assert found[3].sends == 2 and pool._done == {} and not pool._work.left
    log = tmp_path / "log3"
    pool.send_ahead(jobs(log, 5, seconds=20.0))
    assert within(240, lambda: "0 starts" in log.read_text())
    pool.drop_ahead()
    assert [done.result for done in pool.run(jobs(tmp_path / "log4", 1), print)] == [0]
    assert "0 ends" not in log.read_text() and not pool._work.left and pool._work.jobs == {}


def _unreadable() -> None:
    raise OSError("no such library on this node")


class Unreadable:
    clients = 1

    def __reduce__(self) -> Any:
        return _unreadable, ()


def test_an_actor_that_cannot_start_is_not_tried_again(ray_session: None, tmp_path: Path) -> None:
    federation: Any = Unreadable()
    made = RayPool(with_engine(), federation, Placement(1, 1.0, 0.0))
    notes: list[str] = []
    with closing(made), pytest.raises(PlacementError, match=r"(?s)a client actor cannot start: .*no such library"):
        list(made.run(jobs(tmp_path / "log", 1), notes.append))
    assert notes == []


def _beside(federation: Any, path: str) -> tuple[int, int]:
    Path(path).touch()
    return os.getpid(), federation.clients


class Sleepy(Light):
    """Does not come up in its place's first life."""

    def prepare(self, config: Any, federation: Any) -> str:
        if "(life " not in str(ray.get_runtime_context().get_actor_name()):
            time.sleep(600)
        return super().prepare(config, federation)


class SleepyStarter(LightStarter):
    actor: ClassVar[Any] = ray.remote(Sleepy)


def test_an_actor_that_freezes_in_its_start_is_replaced(
    ray_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raysim.actors.pool.LEAST", 0.5)
    config, notes = with_engine(task_deadline=0.5), list[str]()
    data: Any = SimpleNamespace(clients=2)
    found = RayPool(config, data, Placement(1, 0.0, 0.0), starter=SleepyStarter(config.engine))
    assert [done.index for done in found.run(jobs(tmp_path / "log", 2), notes.append)] == [0, 1]
    assert "client-actor-00 did not come up within 0.5 s; another one is started" in notes
    found.close()


def test_a_result_that_waits_for_a_busy_driver_is_not_late(ray_session: None, tmp_path: Path) -> None:
    """Its actor was ended, and the job done again."""
    config, notes = with_engine(task_deadline=2.0, cpus_per_client=0.5), list[str]()
    with closing(light_pool(config, 2, Placement(2, 0.5, 0.0))) as found:
        all_up(found)
        for done in found.run(jobs(tmp_path / "log", 2), notes.append):
            time.sleep(2.5)
            assert done.sends == 1
    assert not notes


def test_what_is_called_aside_ends_with_its_process(pool: RayPool, tmp_path: Path) -> None:
    result = pool.aside(_beside, str(tmp_path / "called"))
    process, clients = result(60)
    assert clients == 8 and (tmp_path / "called").exists() and process not in (os.getpid(), *processes(pool))
    assert within(240, lambda: not Path(f"/proc/{process}").exists(), pause=0.1)
    broken = pool.aside(_broken_aside)
    with pytest.raises(OSError, match="no such font"):
        broken(60)


def _broken_aside(federation: Any) -> None:
    raise OSError("no such font")
