"""Runs of one process share one Ray, which ends with the process or when a run needs another."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import session, shared_ray
from raysim.actors.own_ray import MARK, OwnRay
from raysim.actors.shared_ray import Request
from raysim.driver.outcome import Outcome
from tests.fingerprint import fingerprint
from tests.long_tests import long
from tests.processes import marked, within

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os

import pandas as pd
import ray

import raysim
from raysim.errors import RaysimError
from raysim.engine.observer import Silent
from raysim.results.result import comparable

SMALL = {
    "method": "fedavg", "model": "logistic", "pictures": False, "workload": {"clients": 4, "limit": 200},
    "schedule": {"rounds": 2, "local_epochs": 1}, "engine": {"dashboard": False, "actors": 1},
}
begun = []


class Watcher(Silent):
    def preparing(self, label, done, total):
        begun.extend([label] if done == 0 else [])


def run(name, **more):
    result = raysim.run(SMALL | {"output": name} | more, observer=Watcher())
    return result, ray.get_runtime_context().gcs_address


first, at = run("first")
try:
    run("failed", **{"training.learning_rate": 1e30, "model": "mlp"})
except RaysimError as error:
    assert "NaN or infinite" in str(error)
else:
    raise AssertionError("it did not fail")
assert ray.get_runtime_context().gcs_address == at  # a run that failed is no reason to end Ray
run_damped("ray", "damped-on-ray")  # its class reaches Ray's processes by value: their __main__ is another
assert ray.get_runtime_context().gcs_address == at and begun.count("starting Ray") == 1, begun
run_damped("inline", "damped-inline")
os.environ["SOMETHING_THAT_A_METHOD_READS"] = "1"
third, other = run("third")
assert other != at and begun.count("starting Ray") == 2
pd.testing.assert_frame_equal(comparable(first.rounds), comparable(third.rounds))
print("all is well")
"""


@long  # test_sending.py has two runs of one process
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_runs_of_a_process_share_one_ray_and_leave_nothing(tmp_path: Path) -> None:
    method = Path(__file__).with_name("main_method.py").read_text()
    (tmp_path / "script.py").write_text(method + SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAYSIM_TEST_SHARED": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("all is well\n"), done.stdout + done.stderr
    assert fingerprint(tmp_path / "damped-on-ray") == fingerprint(tmp_path / "damped-inline")
    of_its_rays = (f"RAYSIM_TEST_SHARED={tmp_path}\0", f"{MARK}=")
    assert within(2, lambda: not marked(*of_its_rays), pause=0.1), marked(*of_its_rays)


def test_a_ray_is_shared_only_by_runs_that_need_the_same() -> None:
    there = Request("local", dashboard=True, verbose=False)
    assert there.is_met_by(there)
    without = replace(there, dashboard=False)
    assert without.is_met_by(there)  # nobody has to look at it
    assert not there.is_met_by(without)
    for other in (
        replace(there, address="auto"),
        replace(there, verbose=True),
        replace(there, code=("mine.py",)),
        replace(there, environment={}),
        replace(there, import_path=()),
        replace(there, folder=Path("/")),
    ):
        assert not there.is_met_by(other) and not other.is_met_by(there)


class Dead:
    """A Ray of our own after the user's ``ray.shutdown()``."""

    ended = False

    def dead(self) -> str:
        return "Ray's node manager (raylet) has died on this machine"

    def end(self) -> None:
        self.ended = True


def test_a_ray_that_has_been_shut_down_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(shared_ray, "shut_down", ended.append)
    monkeypatch.setattr(shared_ray, "control_store", lambda: "127.0.0.1:2")
    request, own = Request("local", dashboard=False, verbose=False), Dead()
    dead = shared_ray.Connection(request, own, "", control_store="127.0.0.1:1")  # type: ignore[arg-type]
    for connected in (False, True):  # then to another Ray, of the user's own
        monkeypatch.setattr(shared_ray, "is_connected", lambda connected=connected: connected)
        own.ended = False
        shared_ray.keep(dead)
        assert shared_ray.take(request) is None and own.ended and ended == []
    shared_ray.keep(replace(dead, control_store="127.0.0.1:2"))  # it has died by itself
    assert shared_ray.take(request) is None and ended == [own]


def test_a_cluster_that_does_not_answer_is_left_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray waits a minute for a head that has fallen silent, also at the end of a run that has finished."""
    import ray

    answered, ended = threading.Event(), Future[Outcome]()
    ended.set_result(Outcome("finished"))
    monkeypatch.setattr(ray, "shutdown", answered.wait)
    monkeypatch.setattr(shared_ray, "LEAVE", 0.1)
    monkeypatch.setattr(shared_ray, "_calls", None)
    monkeypatch.setattr(shared_ray, "given_up", False)
    session._clean_up(ended, None, True, 0.0)
    assert shared_ray.given_up  # the command line then ends without Ray's exit handlers
    answered.set()


def test_a_forked_process_neither_uses_nor_ends_the_ray_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[OwnRay | None] = []
    monkeypatch.setattr(shared_ray, "shut_down", ended.append)
    monkeypatch.setattr(shared_ray, "is_connected", lambda: True)
    request = Request("auto", dashboard=False, verbose=False)
    connection = shared_ray.Connection(request, None, "")
    shared_ray.keep(connection)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    shared_ray.end()
    assert ended == []
    shared_ray.keep(connection)
    monkeypatch.setattr(os, "getpid", lambda: parent)
    assert shared_ray.take(request) is None and ended == []
    shared_ray.keep(connection)
    assert shared_ray.take(request) is connection and ended == []
    shared_ray.keep(connection)
    assert shared_ray.take(replace(request, dashboard=True)) is None and ended == [None]
