"""Workers that are forked from a process that has torch, and what is not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import fork_server, forked_worker
from raysim.actors.fork_server import MODULES, SOCKET, ForkServer, is_alike, libraries_of_given, receive
from raysim.actors.own_ray import state
from tests.processes import within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")

OF_A_WORKER = """
    facts = {name: os.environ.get(name) for name in ("RAY_JOB_ID", "SPECIAL", "OMP_NUM_THREADS")}
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
other = Worker.options(runtime_env={{"env_vars": {{"SPECIAL": "1"}}}}).remote()
found["other"] = ray.get(other.facts.remote())
found["alike"].append(ray.get(Worker.remote().facts.remote()))
found["neighbor"] = ray.get(first[1].facts.remote())["process"]
forks.end()
found["without"] = ray.get(Worker.remote().facts.remote())
ray.shutdown()
own.end()
print(json.dumps(found))
"""


def of_program(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_workers_are_forked_and_what_the_server_cannot_fork_starts_as_ever() -> None:
    done = of_program(RAY)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    workers: list[dict[str, Any]] = [*found["alike"], found["other"], found["without"]]
    assert [worker["parent"] == found["server"] for worker in workers] == [True, True, True, False, False]
    assert [worker["torch"] for worker in workers] == [True, True, True, False, False]
    assert found["neighbor"] == found["alike"][1]["process"]
    for worker in workers:  # whoever started it
        assert worker["group"] == worker["process"]
        assert worker["folder"] == str(Path.cwd())
        assert worker["RAY_JOB_ID"] == found["without"]["RAY_JOB_ID"]
        assert worker["threads"] == 1
        for name in ("niceness", "out_of_memory_score", "OMP_NUM_THREADS"):
            assert worker[name] == found["without"][name], name
    assert [worker["SPECIAL"] for worker in workers] == [None, None, None, "1", None]
    draws = [draw for worker in workers for draw in worker["draws"]]
    assert len(set(draws)) == len(draws), "processes that draw without a seed draw alike"
    assert within(30, lambda: all(state(worker["process"]) in ("", "Z") for worker in workers))


def test_what_the_server_imports_leaves_it_fit_to_fork() -> None:
    """Without Ray, whose library reads the environment when it is loaded; with one thread, and no GPU."""
    program = (
        f"import importlib, sys; from raysim.actors import fork_server; [importlib.import_module(name) for name in "
        f"{[*MODULES, 'raysim.workloads._torch_geometric']}]; import torch; "
        "print('ray' in sys.modules, fork_server.can_fork(), torch.cuda.is_initialized())"
    )
    done = of_program(program, **fork_server.ENVIRONMENT)
    assert done.stdout == "False True False\n", done.stderr[-2000:]


def test_the_server_ends_with_who_started_it(tmp_path: Path) -> None:
    program = (
        "import time; from raysim.actors.fork_server import ForkServer; "
        "server = ForkServer(); server.start(); print(server._process.pid, flush=True); time.sleep(60)"
    )
    launcher = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    server = int(launcher.stdout.readline())
    assert state(server) not in ("", "Z")
    launcher.kill()
    launcher.wait()
    assert within(30, lambda: state(server) in ("", "Z"))


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

    monkeypatch.delenv(SOCKET, raising=False)
    given, server = parameter.RayParams, ForkServer()
    server.start()
    try:
        with pytest.raises(KeyboardInterrupt), server.serving():
            assert str(parameter.RayParams().worker_path).endswith("forked_worker.py")
            raise KeyboardInterrupt
    finally:
        server.end()
    assert parameter.RayParams is given and SOCKET not in os.environ and fork_server.WORKER not in os.environ


def test_environments_are_alike_but_for_what_no_import_reads() -> None:
    own = {"PATH": "/bin", "OMP_NUM_THREADS": "1", "RAY_A": "1"}
    assert is_alike({"PATH": "/bin", "RAY_B": "2", SOCKET: "name", "SPT_NOENV": "1"}, own)
    assert not is_alike({"PATH": "/bin", "PYTHONPATH": "/elsewhere"}, own)
    assert not is_alike({"PATH": "/sbin"}, own)
    assert not is_alike({}, own)


def test_a_process_with_threads_or_a_gpu_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import threading; from raysim.actors import fork_server as module; print(module.can_fork()); "
        "file = open('/dev/full'); gpus = module.GPUS; module.GPUS = ('/dev/full',); print(module.can_fork()); "
        "module.GPUS = gpus; end = threading.Event(); thread = threading.Thread(target=end.wait); thread.start(); "
        "print(module.can_fork()); end.set(); thread.join(); print(module.can_fork())"
    )
    assert of_program(program).stdout.split() == ["True", "False", "False", "True"]


def test_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert fork_server.peer_is_this_user(one)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not fork_server.peer_is_this_user(one)


@pytest.mark.parametrize("answer", [b"1", b""])
def test_a_worker_is_described_to_the_server(answer: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SOCKET, f"test-{os.getpid()}-{len(answer)}")
    monkeypatch.setattr(sys, "argv", ["forked_worker.py", "--worker-id=7"])
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{os.environ[SOCKET]}")
        listener.listen()
        received: list[tuple[dict[str, Any], list[int]]] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(receive(connection))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert forked_worker.is_forked("ray.py") == bool(answer)
        thread.join()
    [(worker, files)] = received
    for file in files:
        os.close(file)
    assert len(files) == 3
    assert worker["arguments"] == ["ray.py", "--worker-id=7"] and worker["folder"] == str(tmp_path)
    assert worker["environment"] == dict(os.environ) and worker["niceness"] == os.nice(0)


def test_without_a_server_no_worker_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET, "nobody-listens-here")
    assert not forked_worker.is_forked("ray.py")


def test_a_program_that_has_pytorch_geometric_has_actors_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch_geometric", raising=False)
    assert libraries_of_given() == ()
    monkeypatch.setitem(sys.modules, "torch_geometric", sys)
    assert libraries_of_given() == ("raysim.workloads._torch_geometric",)
