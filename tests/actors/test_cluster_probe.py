"""Joining a cluster that runs already, with token authentication: by jobs, and in vain.

A run from outside, by the client server, is a part of tests/cluster/ray_up.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch

from raysim.actors import cluster_probe, code_shipping
from raysim.actors.start_retry import patiently
from raysim.config.run_config import build, default_config
from raysim.errors import PlacementError
from raysim.launch import main
from raysim.running.python_objects import config_of
from tests.fingerprint import fingerprint
from tests.long_tests import long
from tests.own_data import three_clients
from tests.processes import within
from tests.small_runs import ON_RAY, words

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TOKEN = "0123456789abcdef" * 4
SMALL = words(ON_RAY | {"schedule.rounds": 1, "engine.actors": 1})


@dataclass(frozen=True)
class Cluster:
    """Its three addresses, and where Ray keeps its files."""

    head: str
    client: str
    dashboard: str
    folder: Path


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(found.getsockname()[1]) for found in sockets]
    for found in sockets:
        found.close()
    return ports


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that a user has started, with two CPUs."""
    folder = tempfile.mkdtemp(prefix="rs")  # Ray's sockets need a short path
    process, (port, client, page) = head_in(folder)
    yield Cluster(f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}", f"http://127.0.0.1:{page}", Path(folder))
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


def head_in(folder: str, tries: int = 3) -> tuple[subprocess.Popen[bytes], list[int]]:
    """The head and its ports; others may take a port before the head has it."""
    port, client, page, agent = free_ports(4)
    try:
        return patiently(lambda: start_head(folder, port, client, page, agent)), [port, client, page]
    except AssertionError:
        if tries == 1:
            raise
    return head_in(folder, tries - 1)


def start_head(folder: str, port: int, client: int, page: int, agent: int) -> subprocess.Popen[bytes]:
    command = [
        str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", f"--port={port}", "--num-cpus=2",
        f"--ray-client-server-port={client}", f"--temp-dir={folder}", f"--dashboard-port={page}",
        "--node-ip-address=127.0.0.1", "--object-store-memory=100000000", f"--dashboard-agent-listen-port={agent}",
    ]  # fmt: skip
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "GRPC_ENABLE_FORK_SUPPORT": "0"}
    with Path(folder, "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)
    within(300, lambda: "runtime started" in Path(folder, "log").read_text() or process.poll() is not None, pause=0.1)
    assert "runtime started" in Path(folder, "log").read_text(), Path(folder, "log").read_text()
    return process


@pytest.fixture(autouse=True)
def _only_this_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)


def test_both_ports_answer(cluster: Cluster) -> None:
    def answers() -> bool:
        with suppress(PlacementError):
            cluster_probe.check(cluster.client)
            return True
        return False

    assert within(120, answers, pause=0.2)  # the client server comes a moment after the head
    cluster_probe.check(cluster.head)


@pytest.mark.parametrize("port", ["head", "client"])
def test_a_token_that_is_wrong_missing_or_not_shown(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: str
) -> None:
    address, before = getattr(cluster, port), time.monotonic()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    with pytest.raises(PlacementError, match=r"refuses the token that it was shown\. Next: .*RAY_AUTH_TOKEN"):
        cluster_probe.check(address)
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    with pytest.raises(PlacementError, match="refuses a call without a token"):
        cluster_probe.check(address)
    (tmp_path / "none").write_text(TOKEN + "\n")  # from where RAY_AUTH_TOKEN_PATH says
    cluster_probe.check(address)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(PlacementError, match="refuses a call without a token"):
        cluster_probe.check(address)
    assert time.monotonic() - before < 60  # Ray itself takes half a minute for each of the four


def test_the_wrong_kind_of_port(cluster: Cluster) -> None:
    with pytest.raises(PlacementError, match=r"is a head's own port\. Next: write --engine.address HOST:PORT"):
        cluster_probe.check(f"ray://{cluster.head}")
    with pytest.raises(PlacementError, match=r"is a Ray client server\. Next: write --engine.address ray://"):
        cluster_probe.check(cluster.client.removeprefix("ray://"))


def job(cluster: Cluster, *words: str) -> str:
    """What ``ray job`` says."""
    environment = {**os.environ, "RAY_API_SERVER_ADDRESS": cluster.dashboard, "RAY_AUTH_MODE": "token"}
    command = [str(Path(sys.executable).parent / "ray"), "job", *words]

    def answer() -> subprocess.CompletedProcess[str] | None:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        return None if "No available agent" in done.stderr else done  # it comes a while after the head

    done = within(120, answer, pause=1.0)
    assert done is not None and done.returncode == 0, done
    return done.stdout


def wait_for(file: Path, text: str) -> None:
    assert within(240, lambda: file.exists() and text in file.read_text(), pause=0.1), f"no {text!r} in {file}"


@long
@pytest.mark.timeout(900)
def test_a_run_in_the_background_is_a_job(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/cluster.md shows it: sent, stopped, gone on with, followed to its end."""
    shutil.copy(ROOT / "tests" / "raysim" / "user_code.py", tmp_path / "mine.py")
    settings = json.dumps({"env_vars": {"PYTHONPATH": f"{ROOT}:{tmp_path}", "RAY_JOB_STOP_WAIT_TIME_S": "60"}})
    submit = ("submit", "--no-wait", f"--runtime-env-json={settings}")
    launch = ("--", sys.executable, "-m", "raysim.launch", "--address=auto")
    gate, folder = tmp_path / "go", tmp_path / "run"
    run = (*SMALL, "--rounds=4", "--engine.checkpoint_every=1", "--method=mine:Waiting", f"--method.gate={gate}")
    job(cluster, *submit, "--submission-id=first", *launch, *run, f"--output={folder}")
    wait_for(folder / "rounds.csv", "\n2,")  # the client tasks of the third round wait for the gate
    job(cluster, "stop", "--no-wait", "first")
    said = cluster.folder / "session_latest" / "logs" / "job-driver-first.log"
    wait_for(said, "stopping: ")
    gate.touch()
    wait_for(said, "raysim: stopped")
    job(cluster, *submit, "--submission-id=second", *launch, f"--resume={folder}", "--method=mine:Waiting")
    followed = job(cluster, "logs", "--follow", "second")
    assert "goes on after round 2" in followed and "after 4 rounds" in followed and "1 client actor," in followed
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert main([*run, "--engine.backend=inline", f"--output={tmp_path}/undisturbed"]) == 0
    assert fingerprint(folder) == fingerprint(tmp_path / "undisturbed")


def test_the_code_that_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "tests" / "raysim" / "user_code.py", tmp_path / "travels.py")
    monkeypatch.syspath_prepend(tmp_path)
    own = {str(ROOT / "raysim")}
    assert set(code_shipping.modules(default_config("fedavg"))) == own
    assert set(code_shipping.modules(build([{"method.name": "travels:Broken"}]))) == {
        *own,
        str(tmp_path / "travels.py"),
    }


def test_the_code_of_what_was_given_in_python_travels_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets.py").write_text(
        "import torch\nclass Net(torch.nn.Sequential):\n"
        "    def __init__(self): super().__init__(torch.nn.Linear(4, 3))\n"
    )
    (tmp_path / "losses.py").write_text("def own(outputs, y): return outputs.sum()\n")
    monkeypatch.syspath_prepend(tmp_path)
    nets, losses = import_module("nets"), import_module("losses")
    files = [str(tmp_path / "nets.py"), str(tmp_path / "losses.py")]
    for model in (nets.Net, nets.Net(), torch.nn.Sequential(nets.Net())):
        metrics = {"more": partial(losses.own)}
        config, _ = config_of("fedavg", None, {}, model, three_clients(), loss=losses.own, metrics=metrics)
        assert code_shipping.modules(config)[1:] == files


@pytest.mark.parametrize(("mode", "asks"), [("token", True), ("TOKEN", True), ("disabled", False), (None, False)])
def test_the_dashboard_asks_for_a_token_where_ray_does(
    monkeypatch: pytest.MonkeyPatch, mode: str | None, asks: bool
) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    assert cluster_probe.asks_for_token() is asks


def test_auto_with_a_cluster_that_is_gone_or_frozen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Told within seconds, though Ray's file still names the cluster."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert cluster_probe.of_environment() == ""
    monkeypatch.setattr(cluster_probe, "SECONDS", 1.0)
    (tmp_path / "ray").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never answers
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        (tmp_path / "ray" / "ray_current_cluster").write_text(address)
        assert cluster_probe.of_environment() == address
        before = time.monotonic()
        with pytest.raises(PlacementError, match=r"something listens at .*, but it is no Ray"):
            cluster_probe.check(address)
    with pytest.raises(PlacementError, match="no Ray cluster answers at"):
        cluster_probe.check(address)
    assert time.monotonic() - before < 20


def test_a_machine_without_any_network_interface(tmp_path: Path) -> None:
    trial = subprocess.run(["unshare", "-n", "true"], capture_output=True)
    if trial.returncode:
        pytest.skip("network namespaces are not allowed here")
    command = [sys.executable, "-m", "raysim.launch", *SMALL, f"--output={tmp_path}/run"]
    done = subprocess.run(
        ["unshare", "-n", *command], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "this machine has no network interface that is up" in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()
