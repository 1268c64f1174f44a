"""Ray that does not start, does not answer, or has not what is asked for: told at once, and nothing left behind."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from raysim.actors import cluster_probe, session
from raysim.actors.watch import Watch as WatchOfRay
from raysim.config.run_config import default_config, with_sections
from raysim.driver.outcome import Outcome
from raysim.errors import ResultsError
from raysim.launch import main
from raysim.storage.checkpoint import save
from raysim.storage.client_shards import ClientFiles
from raysim.workloads.given.given_data import GivenModel
from tests.processes import within
from tests.small_runs import ON_RAY, words
from tests.watch import Watch

SMALL = words(ON_RAY | {"schedule.rounds": 1, "output": "run"})


def start(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, float]:
    """Exit code, standard error, seconds."""
    before = time.monotonic()
    code = main([*SMALL, *arguments])
    return code, capsys.readouterr().err, time.monotonic() - before


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_ray_not_able_to_start(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def init(**options: Any) -> None:
        raise RuntimeError("The current node timed out during startup")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    code, error, _ = start(capsys)
    assert code == 1 and "Ray could not start on this machine: RuntimeError: The current node timed out" in error
    assert "--engine.backend inline" in error and "Traceback" not in error
    assert not (folder / "run").exists()


def test_what_cannot_be_sent_is_said_before_ray_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr("raysim.actors.shared_ray.is_connected", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray was started"))
    usual = default_config("fedavg")
    config = with_sections(usual, model=GivenModel(class_name="Net").holding(threading.Lock()))
    outcome = session.run_on_ray(config, folder, Watch())
    assert outcome.refused and outcome.message.startswith("model Net: attribute held of an object of GivenModel, of ")


class Unreadable:
    """An object that can be sent, and not be made again."""

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("not a number",)


@pytest.mark.usefixtures("ray_session")
def test_what_cannot_be_read_by_the_driver_ends_the_run_at_once(folder: Path) -> None:
    config = with_sections(default_config("fedavg"), model=GivenModel(class_name="Net").holding(Unreadable()))
    outcome = session.run_on_ray(config, folder, Watch())
    assert outcome.status == "failed" and "ValueError" in outcome.traceback
    assert outcome.message.startswith("the run's settings cannot be read in Ray's processes: ")
    assert "not a number" in outcome.message


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_a_cluster_that_does_not_answer(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as free:  # bound and not listening: nobody else can take the port meanwhile
        free.bind(("127.0.0.1", 0))
        address = form.format(free.getsockname()[1])
        code, error, seconds = start(capsys, f"--engine.address={address}")
    assert code == 1 and f"no Ray cluster answers at {address}" in error and seconds < cluster_probe.SECONDS + 10
    assert not (folder / "run").exists()


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        # By the driver before it loads the data (every such sentence is in test_capacity.py), and of the data.
        ("--engine.actors=9", "--engine.actors 9 cannot be met, only 3 fit"),
        ("--workload.clients=5000", "5000 clients are more than the"),
    ],
)
def test_what_the_cluster_can_never_give(
    folder: Path, capsys: pytest.CaptureFixture[str], argument: str, message: str
) -> None:
    code, error, seconds = start(capsys, argument)
    assert code == 2 and message in error and "Traceback" not in error
    assert seconds < 60  # an error, not a wait (the driver's start alone takes some seconds)
    assert not (folder / "run").exists()


@pytest.mark.usefixtures("ray_session")
def test_a_mistake_in_a_users_method_is_told_with_one_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = "--method=tests.raysim.user_code:Broken"
    code, error, _ = start(capsys, method, "--rounds=3", "--workload.limit=300", "--engine.checkpoint_every=1")
    assert code == 1 and "client 2, round 2, stage train: ZeroDivisionError: a mistake of mine" in error
    assert error.count("Traceback (most recent call last)") == 1 and 'user_code.py", line' in error
    advice = f"Go on with: python -m raysim.launch --resume run {method.replace('=', ' ')}"
    assert error.splitlines()[-1] == advice


def test_a_job_that_does_not_use_its_cluster_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    watch = Watch()
    monkeypatch.setattr(session, "start_ray", lambda *_, **__: (True, ""))
    monkeypatch.setattr(session, "follow", lambda *_: Outcome("finished"))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    session.run_on_ray(default_config("fedavg"), folder, watch)
    assert watch.notes == []
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")  # as Ray does in every job
    session.run_on_ray(default_config("fedavg"), folder, watch)
    assert len(watch.notes) == 1 and "--engine.address auto" in watch.notes[0]


@pytest.mark.parametrize(
    ("kept", "said"),
    [(False, "No checkpoint had been written: start the run again"), (True, "The last checkpoint is kept")],
)
@pytest.mark.parametrize("how", ["silent", "dead", "raises"])
def test_a_checkpoint_is_promised_only_where_there_is_one(
    kept: bool, said: str, how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kept:
        save(folder / "checkpoints", 3, {}, (), lambda _: None, {}, 1, ClientFiles())
    never = threading.Event()

    def ends(*_: object) -> Outcome:
        if how == "raises":
            raise ConnectionError
        return Outcome("failed", "as it went") if how == "dead" else Outcome(str(never.wait(20)))

    monkeypatch.setattr(session, "start_ray", lambda *_, **__: (False, ""))
    monkeypatch.setattr(session, "follow", ends)
    monkeypatch.setattr(session, "_clean_up", lambda *_: never.set())
    gone = "" if how == "silent" else "it has died"
    monkeypatch.setattr(WatchOfRay, "look", lambda _: "it is silent" if how == "silent" else "")
    monkeypatch.setattr(WatchOfRay, "what_is_gone", lambda _: gone)
    outcome = session.run_on_ray(default_config("fedavg"), folder, Watch())
    assert outcome == Outcome("failed", f"{gone or 'it is silent'}. {said}")


@pytest.mark.parametrize(("error", "begun"), [(ValueError, True), (KeyboardInterrupt, True), (ValueError, False)])
def test_an_error_in_the_launching_process_lets_the_driver_save(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], begun: bool
) -> None:
    """Without it, rounds that were done between two checkpoints were lost, which a run without Ray saves."""
    saved: list[bool] = []

    def goes_on(config: Any, folder: Path, relay: Any, stopping: Any, dropped: Any, watch: Any) -> Outcome:
        if begun:
            (folder / "rounds.csv").touch()
        relay.note("a round is done")
        while not stopping() and not dropped():
            threading.Event().wait(0.01)
        saved.append(not dropped())
        return Outcome("stopped")

    def refuse(text: str) -> None:
        raise error(text)

    monkeypatch.setattr(session, "start_ray", lambda *_, **__: (False, ""))
    monkeypatch.setattr(session, "follow", goes_on)
    observer = Watch()
    monkeypatch.setattr(observer, "note", refuse)
    with pytest.raises(error, match="a round is done"):
        session.run_on_ray(default_config("fedavg"), folder, observer)
    assert within(60, lambda: saved == [begun])  # before the first round there is nothing to wait for


def test_a_folder_that_the_drivers_node_does_not_have(tmp_path: Path) -> None:
    from raysim.actors.driver import DriverActor

    actor: Any = DriverActor  # as Ray's decorator leaves it
    config = default_config("fedavg")
    driver = actor.__ray_metadata__.modified_class((config.engine, 1, ()), str(tmp_path / "elsewhere"))
    with pytest.raises(ResultsError, match=r"there is no such folder on .*Next: choose an --output on a file system"):
        driver._drive(config)
