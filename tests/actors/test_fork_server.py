"""A process that has torch and forks Ray's workers: when it starts and ends, and what it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import fork_server
from raysim.actors.fork_server import MODULES, OF_RAY, SOCKET, ForkServer, libraries_of_given
from raysim.actors.own_ray import state
from tests.processes import within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")

OF_A_WORKER = """
    facts = {name: os.environ.get(name) for name in ("RAY_JOB_ID", "OMP_NUM_THREADS")}
    facts |= {"parent": os.getppid(), "process": os.getpid(), "group": os.getpgid(0), "folder": os.getcwd()}
    facts |= {"torch": "torch" in sys.modules, "niceness": os.nice(0)}
    facts["out_of_memory_score"] = open("/proc/self/oom_score_adj").read()
    import random, numpy, torch
    facts |= {"draws": [random.random(), numpy.random.random()], "threads": torch.get_num_threads()}
    return facts
"""
RAY = f"""
import json, os, sys
from raysim.actors.fork_server import ForkServer
from raysim.actors.own_ray import OwnRay
from raysim.actors.ray_start import start_ray
from raysim.config.sections import Engine

forks = ForkServer()
own = OwnRay(forks)
start_ray(Engine(dashboard=False), forks=forks)
own.started()
import ray

def facts_of(self):{OF_A_WORKER}

Worker = ray.remote(num_cpus=0.1)(type("Worker", (), {{"facts": facts_of}}))
found = {{"server": forks._process.pid}}
first = [Worker.remote() for _ in range(2)]
found["alike"] = ray.get([worker.facts.remote() for worker in first])
ray.kill(first[0])  # Ray ends a worker's group of processes: neither the server nor its neighbor are in it
found["neighbor"] = ray.get(first[1].facts.remote())["process"]
forks.end()
found["without"] = ray.get(Worker.remote().facts.remote())
ray.shutdown()
own.end()
print(json.dumps(found))
"""


def of_program(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The output of a program, without what the tests of Ray set for all, and a developer may."""
    left_out = {SOCKET, "RAY_worker_niceness", *fork_server.THREADS}
    own = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**own, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_workers_are_forked_and_what_the_server_cannot_fork_starts_as_ever() -> None:
    done = of_program(RAY)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    workers: list[dict[str, Any]] = [*found["alike"], found["without"]]
    assert [worker["parent"] == found["server"] for worker in workers] == [True, True, False]
    assert [worker["torch"] for worker in workers] == [True, True, False]
    assert found["neighbor"] == found["alike"][1]["process"]
    for worker in workers:  # whoever started it
        assert worker["group"] == worker["process"]
        assert worker["folder"] == str(Path.cwd())
        assert worker["RAY_JOB_ID"] == found["without"]["RAY_JOB_ID"]
        assert worker["threads"] == 1
        for name in ("niceness", "out_of_memory_score", "OMP_NUM_THREADS"):
            assert worker[name] == found["without"][name], name
    draws = [draw for worker in workers for draw in worker["draws"]]
    assert len(set(draws)) == len(draws), "processes that draw without a seed draw alike"
    assert within(120, lambda: all(state(worker["process"]) in ("", "Z") for worker in workers))


def test_a_server_that_was_ended_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SOCKET, *fork_server.THREADS):
        monkeypatch.delenv(name, raising=False)
    server = ForkServer()
    server.end()
    server.start()
    assert server._process is None


def test_what_the_server_imports_leaves_it_fit_to_fork() -> None:
    """Ray is not among it, whose library reads the environment when it is loaded; one thread is left, and no GPU."""
    program = (
        f"import importlib, sys; from raysim.actors import fork_server; [importlib.import_module(name) for name in "
        f"{[*OF_RAY, *MODULES, 'raysim.workloads._torch_geometric']}]; "
        "print('ray' in sys.modules, fork_server.can_fork())"
    )
    done = of_program(program, **fork_server.ENVIRONMENT)
    assert done.stdout == "False True\n", done.stderr[-2000:]


def test_the_server_ends_with_who_started_it(tmp_path: Path) -> None:
    program = (
        "import time; from raysim.actors.fork_server import ForkServer; "
        "server = ForkServer(); server.start(); print(server._process.pid, flush=True); time.sleep(60)"
    )
    own = {name: value for name, value in os.environ.items() if name not in (SOCKET, *fork_server.THREADS)}
    launcher = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=own)
    assert launcher.stdout is not None
    server = int(launcher.stdout.readline())
    assert state(server) not in ("", "Z")
    launcher.kill()
    launcher.wait()
    assert within(120, lambda: state(server) in ("", "Z"))


@pytest.mark.parametrize(("name", "value"), [(SOCKET, "0"), ("OMP_NUM_THREADS", "4"), ("OPENBLAS_NUM_THREADS", "2")])
def test_a_server_that_is_not_wanted_or_would_have_threads_is_not_started(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray._private import parameter

    monkeypatch.setenv(name, value)
    server = ForkServer()
    server.start()
    with server.serving():
        assert parameter.RayParams().worker_path is None
        assert os.environ[name] == value
    server.end()


def test_ray_is_as_before_when_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private import parameter

    for name in (SOCKET, *fork_server.THREADS):
        monkeypatch.delenv(name, raising=False)
    given, server = parameter.RayParams, ForkServer()
    server.start()
    try:
        with pytest.raises(KeyboardInterrupt), server.serving():
            assert str(parameter.RayParams().worker_path).endswith("forked_worker.py")
            raise KeyboardInterrupt
    finally:
        server.end()
    assert parameter.RayParams is given and SOCKET not in os.environ and fork_server.WORKER not in os.environ


def test_a_process_with_threads_or_a_gpu_is_not_forked() -> None:
    program = (
        "import threading; from raysim.actors import fork_server as module; print(module.can_fork()); "
        "file = open('/dev/full'); gpus = module.GPUS; module.GPUS = ('/dev/full',); print(module.can_fork()); "
        "module.GPUS = gpus; end = threading.Event(); thread = threading.Thread(target=end.wait); thread.start(); "
        "print(module.can_fork()); end.set()"
    )
    assert of_program(program).stdout.split() == ["True", "False", "False"]


def test_a_program_that_has_pytorch_geometric_has_actors_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch_geometric", raising=False)
    assert libraries_of_given() == ()
    monkeypatch.setitem(sys.modules, "torch_geometric", sys)
    assert libraries_of_given() == ("raysim.workloads._torch_geometric",)
