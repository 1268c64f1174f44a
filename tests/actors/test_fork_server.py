"""Workers are forked from a process that has torch, and are as those that Ray starts."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import fork_server, forked_worker
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
        timeout=120,
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
    assert within(30, lambda: all(state(worker["process"]) in ("", "Z") for worker in workers))


FACTS = """
import json, os, resource, signal, sys
mask = os.umask(0)
facts = {"arguments": sys.argv[1:], "name": __name__, "first_folder": sys.path[0], "path": sys.path[1:], "umask": mask}
facts |= {"folder": os.getcwd(), "group": os.getpgid(0) == os.getpid(), "session": os.getsid(0)}
facts |= {"environment": {name: value for name, value in os.environ.items() if name not in sys.argv}}
facts |= {"blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "niceness": os.nice(0)}
facts |= {"handlers": [str(signal.getsignal(number)).split(" at ")[0] for number in (1, 2, 15, 17)]}
facts |= {"files": resource.getrlimit(resource.RLIMIT_NOFILE), "open": sorted(map(int, os.listdir("/proc/self/fd")))}
facts |= {"score": open("/proc/self/oom_score_adj").read(), "flags": list(sys.flags)}
print(json.dumps({"numpy": "numpy" in sys.modules, **facts}), flush=True)
"""


class Served:
    """A fork server alone, without Ray, and programs of workers that ask it."""

    def __init__(self, folder: Path, before: str = "pass") -> None:
        self.program, self.name = folder / "a_worker.py", f"test-{os.getpid()}-{folder.name}"
        self.program.write_text(FACTS, encoding="utf-8")
        left_out = {*fork_server.THREADS}
        self.own = {name: value for name, value in os.environ.items() if name not in left_out}
        self.own[SOCKET] = self.name
        code = f"from raysim.actors import fork_server; {before}; fork_server.main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "threadpoolctl,numpy", *sys.path],
            stdin=subprocess.PIPE,
            env={**fork_server.ENVIRONMENT, **self.own},
            process_group=0,
        )
        assert within(30, self._listens)

    def _listens(self) -> bool:
        return f"@{self.name}\n" in Path("/proc/net/unix").read_text()

    def asked(self, *arguments: str, python: Sequence[str] = (), before: Any = None, **environment: str) -> Any:
        """The facts of a worker that is started as Ray's node manager does, with arguments and an environment."""
        started = subprocess.run(
            [sys.executable, *python, forked_worker.__file__, *arguments],
            env={**self.own, fork_server.WORKER: str(self.program), **environment},
            capture_output=True,
            timeout=60,
            check=True,
            preexec_fn=before,
            start_new_session=False,
        )
        return json.loads(started.stdout)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.end()


def test_a_forked_worker_is_as_one_that_starts_by_itself(served: Served) -> None:
    def before() -> None:
        os.setpgid(0, 0)
        os.umask(0o027)
        os.nice(3)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        Path("/proc/self/oom_score_adj").write_text("500")
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    forked = served.asked("--worker-id=7", before=before)
    alone = served.asked("--worker-id=7", before=before, **{SOCKET: "nobody-listens-here"})
    assert (forked.pop("numpy"), alone.pop("numpy")) == (True, False)
    for facts in (forked, alone):
        facts["environment"].pop(SOCKET)
    assert forked == alone
    assert forked["umask"] == 0o027 and forked["score"] == "500\n" and forked["blocked"] == [signal.SIGINT]


def test_files_are_closed_whatever_is_sent(served: Served) -> None:
    served.asked()
    before = sorted(Path(f"/proc/{served.process.pid}/fd").iterdir())
    for length, files in ((b"\x09" * 8, [0, 1, 2]), (bytes(7) + b"\x02", [0, 1]), (bytes(7) + b"\x02", [0, 1, 2])):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"\0{served.name}")
            socket.send_fds(client, [length], files)
            client.sendall(b"{}")
    assert served.asked()["numpy"]
    assert sorted(Path(f"/proc/{served.process.pid}/fd").iterdir()) == before


@pytest.mark.parametrize(
    ("environment", "python"),
    [({"SPECIAL": "1"}, []), ({"OMP_NUM_THREADS": "4"}, []), ({}, ["-O"])],
    ids=["environment", "threads", "flags"],
)
def test_a_worker_that_would_import_something_else_is_not_forked(
    served: Served, environment: dict[str, str], python: list[str]
) -> None:
    facts = served.asked(python=python, **environment)
    assert not facts["numpy"]
    assert environment.items() <= facts["environment"].items() and facts["flags"][3] == len(python)


def test_a_worker_is_forked_whatever_a_ray_before_has_set(served: Served) -> None:
    """Ray sets Python's debugger in a process that it connects; a Ray that is started there later hands it on."""
    facts = served.asked(PYTHONBREAKPOINT="ray.util.rpdb.set_trace")
    assert facts["numpy"] and facts["environment"]["PYTHONBREAKPOINT"] == "ray.util.rpdb.set_trace"


@pytest.mark.parametrize(
    "defect",
    [
        "fork_server.os.geteuid = lambda: 12345",
        "fork_server.can_fork = lambda: False",
        "fork_server.os.setpgid = lambda *_: 1 / 0",
    ],
    ids=["another user", "threads", "an error behind the fork"],
)
def test_a_worker_that_the_server_does_not_serve_becomes_ray_s_own(tmp_path: Path, defect: str) -> None:
    server = Served(tmp_path, defect)
    try:
        assert not server.asked()["numpy"]
    finally:
        server.end()


def test_a_name_that_another_user_has_taken_is_not_trusted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET, served.name)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not forked_worker.is_forked("a_program_that_is_never_run.py")


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


def test_without_a_server_no_worker_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET, "nobody-listens-here")
    assert not forked_worker.is_forked("ray.py")


def test_a_program_that_has_pytorch_geometric_has_actors_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch_geometric", raising=False)
    assert libraries_of_given() == ()
    monkeypatch.setitem(sys.modules, "torch_geometric", sys)
    assert libraries_of_given() == ("raysim.workloads._torch_geometric",)
