"""Runs whose folder is mirrored to a server of S3: whole at the end, through lost connections, and gone on with."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import raysim
from raysim import evaluate, launch, verify
from raysim.errors import FAILED, FINISHED, REFUSED, DamagedError, DiskFullError, RaysimError
from raysim.remote import upload
from raysim.remote.address import local_folder
from raysim.remote.mirror import Mirror
from raysim.remote.state import BLOCKS, STATES, whole_states
from raysim.remote.store import Store
from raysim.remote.upload import ConflictError, Upload, run_files
from raysim.report import run_page
from raysim.results.result import load_result
from raysim.running.mirrored import mirrored
from raysim.storage.run_folder import RunFolder
from tests.s3_server import S3Server, s3_server
from tests.small_runs import IN_PROCESS, LOGISTIC

SETTINGS = IN_PROCESS | LOGISTIC | {"engine.checkpoint_every": 1, "schedule.rounds": 4}
WORDS = [f"--{name}={str(value).lower()}" for name, value in SETTINGS.items()]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as found:
        yield found


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The head of the proof of the run on this machine alone, which every other must have."""
    folder = tmp_path_factory.mktemp("here") / "run"
    return str(raysim.run(SETTINGS, output=str(folder)).summary["proof"])


@pytest.fixture(autouse=True)
def _working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class After(raysim.Observer):
    """Does something after a round."""

    def __init__(self, actions: Mapping[int, Callable[[], object]]) -> None:
        self._actions, self.notes = actions, list[str]()

    def round_finished(self, row: Mapping[str, Any]) -> None:
        self._actions.get(row["round"], lambda: None)()

    def note(self, text: str) -> None:
        self.notes.append(text)


def in_the_bucket(address: str) -> dict[str, int]:
    """Bytes of the files of the newest state, by name."""
    return {file.name: file.bytes for file in whole_states(Store(address))[-1].files}


def in_the_folder(folder: Path) -> dict[str, int]:
    return {name: path.stat().st_size for name, path in run_files(folder)}


def test_a_run_is_whole_there_and_read_from_there(
    server: S3Server, proof: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "s3://bucket/runs/first"
    assert launch.main([*WORDS, f"--output={address}"]) == FINISHED
    folder = local_folder(address)
    assert in_the_bucket(address) == in_the_folder(folder)
    store = Store(address)
    states = whole_states(store)
    assert set(store.names(BLOCKS)) == {digest for state in states for digest in state.blocks()}  # no more than that
    capsys.readouterr()

    folder.rename("aside")  # as on another machine
    assert verify.main([address]) == FINISHED
    assert proof in capsys.readouterr().out
    assert evaluate.main([address]) == FINISHED
    assert run_page.main([address]) == FINISHED
    page = Path(capsys.readouterr().out.splitlines()[-1])
    assert page.name == "report.html" and page.is_file()
    assert load_result(address).summary["proof"] == proof
    assert not folder.exists()  # who only reads makes no working folder

    assert launch.main([*WORDS, f"--output={address}"]) == REFUSED
    assert "already holds a run" in capsys.readouterr().err


def test_a_lost_connection_ends_nothing(server: S3Server, proof: str) -> None:
    address = "s3://bucket/lost"
    watcher = After({1: server.down, 3: server.up})
    result = raysim.run(SETTINGS, output=address, observer=watcher)
    assert result.summary["proof"] == proof
    assert in_the_bucket(address) == in_the_folder(result.folder)


def test_what_is_not_there_at_the_end_is_said_and_brought_later(
    server: S3Server, proof: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "s3://bucket/late"
    watcher = After({2: server.down})
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = raysim.run(SETTINGS, output=address, observer=watcher)
    finally:
        server.up()
    assert result.summary["proof"] == proof  # whole here
    (said,) = [str(warning.message) for warning in caught if address in str(warning.message)]
    assert f"--resume {address}" in said and str(result.folder) in said
    assert "summary.json" not in in_the_bucket(address)
    assert any("goes on in" in line for line in (result.folder / "run.log").read_text().splitlines())

    assert launch.main(["--resume", address]) == FINISHED
    assert in_the_bucket(address) == in_the_folder(result.folder)


def test_a_second_process_that_is_refused_stops_no_mirror(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.storage.process_lock.LAUNCHER_SECONDS", 0.1)
    address = "s3://bucket/twice"

    def second() -> None:
        with pytest.raises(RaysimError, match="is at work on this run"):
            raysim.run({}, resume=address)
        assert '"state": "failed"' not in (local_folder(address) / "status.json").read_text()

    result = raysim.run(SETTINGS, output=address, observer=After({2: second}))
    assert in_the_bucket(address) == in_the_folder(result.folder)


@pytest.mark.parametrize(
    ("owner", "function", "error"),
    [
        (RunFolder, "rounds_written", OSError("input/output error")),
        (upload, "whole_states", DamagedError("no whole state")),
    ],
)
def test_the_end_waits_for_nothing_that_stays_as_it_is(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, owner: object, function: str, error: Exception
) -> None:
    folder = raysim.run(SETTINGS, output="begun", rounds=1).folder
    calls: list[object] = []

    def fail(*arguments: object) -> None:
        calls.append(arguments)
        assert len(calls) < 200, "tried for ever, since the server lists its objects each time"
        raise error

    monkeypatch.setattr(owner, function, fail)
    stuck = Mirror("s3://bucket/stuck", folder, resumed=True)
    stuck.close()
    assert str(error) in stuck.fault and "is not complete" in stuck.incomplete()


def test_a_full_disk_here_keeps_no_state_from_being_sent(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, proof: str
) -> None:
    def full(folder: Path, names: list[str]) -> None:
        raise DiskFullError(f"Cannot write {folder}")

    monkeypatch.setattr(upload, "write_origins", full)
    address = "s3://bucket/full"
    result = raysim.run(SETTINGS, output=address)
    assert in_the_bucket(address) == in_the_folder(result.folder)
    resumed = raysim.run({}, resume=address)  # in a folder of which it is not known where it comes from
    assert resumed.summary["proof"] == proof


def test_files_that_cannot_be_there_are_told_once(server: S3Server) -> None:
    folder, watcher = raysim.run(SETTINGS, output="begun", rounds=1).folder, After({})
    late, early = "s3://bucket/late-names", "s3://bucket/early-names"
    with mirrored(late, folder, watcher, resumed=False):
        (folder / "a\\b").touch()  # found at the end alone
    there = in_the_folder(folder)
    assert there.pop("a\\b") == 0
    assert in_the_bucket(late) == there  # with the log's last line
    with mirrored(early, folder, watcher, resumed=False):
        (folder / "a\nb").touch()  # the second time that some are found
    for told in (watcher.notes, (folder / "run.log").read_text().splitlines()):
        lines = [line for line in told if "is without 1 file of" in line and "100,000 files" in line]
        assert [late in line for line in lines] == [True, False] and early in lines[1]


def test_another_machine_goes_on_from_the_last_whole_state(server: S3Server, proof: str, tmp_path: Path) -> None:
    address = "s3://bucket/moved"
    whole = raysim.run(SETTINGS, output="whole")
    store, begun = Store(address), raysim.run(SETTINGS, output="begun", rounds=2).folder
    upload = Upload(store, begun)
    first = upload.bring()
    # A half-written upload: blocks of a later state, and half of the state itself.
    store.put(f"{BLOCKS}/{'0' * 64}", b"half a block")
    later = first.encoded()[:-40]
    store.put(f"{STATES}/00000099-{'ab' * 8}.json", later)
    assert whole_states(store) == [first]

    result = raysim.run({}, resume=address, rounds=4)
    assert result.summary["proof"] == proof == whole.summary["proof"]
    assert in_the_bucket(address) == in_the_folder(result.folder)
    assert verify.main([address, "--rounds=4"]) == FINISHED

    # The first machine, which knows nothing of that, sends no more.
    RunFolder(begun).log("still here")
    with pytest.raises(ConflictError):
        upload.bring()


def test_a_run_that_goes_on_elsewhere_replaces_no_newer_state(server: S3Server) -> None:
    address = "s3://bucket/alive"
    begun = raysim.run(SETTINGS, output="begun", rounds=2).folder
    first = Upload(Store(address), begun)
    first.bring()

    def still_alive() -> None:
        RunFolder(begun).log("still here")
        first.bring()

    with pytest.warns(UserWarning, match="another process has written there since"):
        result = raysim.run({}, resume=address, rounds=4, observer=After({3: still_alive}))
    assert len(result.rounds) == 4  # whole here
    assert whole_states(Store(address))[-1] == first.last


def test_a_working_folder_that_others_have_left_behind_is_put_aside(
    server: S3Server, proof: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "s3://bucket/behind"
    raysim.run(SETTINGS, output=address, rounds=2)
    folder = local_folder(address)
    kept = folder.rename("kept")
    raysim.run({}, resume=address, rounds=4)
    folder.rename("other")
    kept.rename(folder)
    assert launch.main(["--resume", address]) == FINISHED
    assert "it is now" in capsys.readouterr().err
    assert folder.with_name(f"{folder.name}-2").is_dir()  # nothing is lost
    assert load_result(folder).summary["proof"] == proof


def test_a_run_without_a_round_leaves_nothing(server: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise RuntimeError("no")

    class Failing(raysim.Observer):
        def round_started(self, round: int, local_epochs: int, participants: int) -> None:
            fail()

    address = "s3://bucket/nothing"
    with pytest.raises(RaysimError):
        raysim.run(SETTINGS, output=address, observer=Failing())
    assert not local_folder(address).exists()
    assert not Store(address).names(STATES) and not Store(address).names(BLOCKS)


def test_a_remote_side_that_is_not_there_is_refused_before_the_run(
    server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "s3://nobucket/run"
    assert launch.main([*WORDS, f"--output={address}"]) == REFUSED
    said = capsys.readouterr().err
    assert address in said and "AWS_ENDPOINT_URL" in said
    assert not local_folder(address).exists()


def test_the_command_line_says_it_by_its_exit_code(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "s3://bucket/code"

    def lost(self: Upload) -> Any:
        raise ConnectionError("cut")

    brought = Upload.bring
    calls: list[int] = []

    def once(self: Upload) -> Any:
        calls.append(1)
        return brought(self) if len(calls) == 1 else lost(self)

    monkeypatch.setattr(Upload, "bring", once)
    assert launch.main([*WORDS, "--rounds=1", "--json", f"--output={address}"]) == FAILED
    told = capsys.readouterr()
    assert '"complete": false' in told.out and '"status": "finished"' in told.out
    assert "is not complete" in told.err
