"""States that anybody may have written, and what comes of a folder that was stored and read back."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from raysim.errors import DamagedError
from raysim.remote import download, state, upload
from raysim.remote.download import download as fetched
from raysim.remote.state import BLOCKS, STATES, State, StoredFile, decoded
from raysim.remote.store import PATIENCE, Store, UnreachableError
from raysim.remote.upload import Upload


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Objects in a folder of this machine, through fsspec."""
    return Store(f"file://{tmp_path}/there/run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files as a run's folder has them, some of which belong to this machine alone."""
    place = tmp_path / "here"
    for name, text in {
        "config.yaml": "seed: 0\n",
        "rounds.csv": "round,loss\n1,0.5\n",
        "checkpoints/round-000001/server.json": "{}",
        "checkpoints/round-000002.partial/server.json": "{",
        ".lock": "",
        "process.json": "{}",
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def entry(**changes: Any) -> dict[str, Any]:
    return {"name": "rounds.csv", "bytes": 2, "blocks": ["0" * 64]} | changes


def encoded(files: list[dict[str, Any]], **changes: Any) -> bytes:
    content = {"format": 1, "number": 1, "writer": "ab" * 8, "rounds": 1, "files": files} | changes
    checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content | {"sha256": checksum}).encode()


NAME = f"00000001-{'ab' * 8}.json"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 100_000,
        b"[]",
        encoded([entry()])[:-30],
        encoded([entry()]).replace(b"rounds.csv", b"rounds.cst"),
        encoded([entry()], number=2),
        encoded([entry()], format=2),
        encoded([entry()], rounds=float("inf")),
        *(
            encoded([entry(name=name)])
            for name in ("../x", "/etc/x", "a/../x", "a//x", "a\\x", "a/", "", ".lock", "a\nb", "/".join("abcdefghi"))
        ),
        encoded([entry(name="\ud800")]),
        encoded([entry(name=3)]),
        encoded([entry(bytes=-1)]),
        encoded([entry(bytes="2")]),
        encoded([entry(bytes=2**40)]),
        encoded([entry(blocks=["../x"])]),
        encoded([entry(), entry()]),
    ],
)
def test_what_no_run_has_written_is_no_state(data: bytes) -> None:
    with pytest.raises(ValueError):
        decoded(data, NAME)


def test_a_state_is_read_as_it_was_written() -> None:
    written = State(1, "ab" * 8, 1, (StoredFile("rounds.csv", 2, ("0" * 64,)),))
    assert decoded(written.encoded(), written.name) == written
    assert decoded(encoded([entry()]), NAME) == written


def test_a_folder_comes_back_as_it_was(store: Store, folder: Path, tmp_path: Path) -> None:
    sent = Upload(store, folder)
    assert sent.bring() is sent.bring()  # nothing has changed
    copy = tmp_path / "copy"
    names = {"config.yaml", "rounds.csv", "checkpoints/round-000001/server.json"}
    for _ in range(2):
        fetched(store, copy)
        assert {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()} == names | {
            ".remote.json"
        }
        assert (copy / "rounds.csv").read_text() == "round,loss\n1,0.5\n"
    (folder / "checkpoints/round-000001/server.json").unlink()
    sent.bring()
    fetched(store, copy, wanted=lambda name: name != "config.yaml")
    assert not (copy / "checkpoints").exists()


def test_files_that_no_state_may_hold_are_left_out(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_FILES", 3)
    others = sorted(["a\\b", "a\nb", "/".join("abcdefghi"), "a\\c/file", "a/beyond the largest number"])
    for name in others:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("of a tracker")
    sent = Upload(store, folder)
    found = sent.bring()
    assert sent.left_out == others
    assert [file.name for file in found.files] == ["checkpoints/round-000001/server.json", "config.yaml", "rounds.csv"]
    assert state.whole_states(store) == [found]


def test_a_table_that_grows_sends_its_last_block_alone(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (state, upload, download):
        monkeypatch.setattr(module, "BLOCK_BYTES", 4)
    sent = Upload(store, folder)
    sent.bring()
    before = set(store.names(BLOCKS))
    with (folder / "rounds.csv").open("a") as file:
        file.write("2,")
    sent.bring()
    assert len(set(store.names(BLOCKS)) - before) == 1
    for text in ("x", "xy", "xyz"):
        (folder / "rounds.csv").write_text(text)
        sent.bring()
    assert len(store.names(STATES)) == upload.KEPT_STATES
    assert set(store.names(BLOCKS)) == {digest for kept in state.whole_states(store) for digest in kept.blocks()}


def test_a_block_that_has_changed_is_damage(store: Store, folder: Path, tmp_path: Path) -> None:
    found = Upload(store, folder).bring()
    (rounds,) = [file for file in found.files if file.name == "rounds.csv"]
    store.put(f"{BLOCKS}/{rounds.blocks[0]}", b"x" * rounds.bytes)
    with pytest.raises(DamagedError, match=r"rounds\.csv"):
        fetched(store, tmp_path / "copy")
    assert not (tmp_path / "copy" / "config.yaml").exists()  # no run
    store.put(f"{BLOCKS}/{rounds.blocks[0]}", b"x")
    with pytest.raises(DamagedError, match="no whole state"):
        fetched(store, tmp_path / "copy")


def test_an_answer_that_was_lost_is_no_conflict(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Upload(store, folder)
    put = store.put

    def losing(name: str, data: bytes) -> None:
        put(name, data)
        if name.startswith(STATES):
            raise UnreachableError("cut")

    monkeypatch.setattr(store, "put", losing)
    with pytest.raises(UnreachableError):
        sent.bring()
    monkeypatch.setattr(store, "put", put)
    sent.bring()
    assert len(store.names(STATES)) == 1


def test_a_state_that_comes_late_takes_the_place_of_none(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Upload(store, folder)
    late: dict[str, bytes] = {}

    def slow(name: str, data: bytes) -> None:
        if name.startswith(STATES):
            late[name] = data
            raise UnreachableError("no answer")
        Store.put(store, name, data)

    monkeypatch.setattr(store, "put", slow)
    with pytest.raises(UnreachableError):
        sent.bring()
    monkeypatch.undo()
    (folder / "rounds.csv").write_text("round,loss\n1,0.5\n2,0.4\n")
    second = sent.bring()
    for name, data in late.items():
        store.put(name, data)
    assert state.whole_states(store)[-1] == second
    (folder / "rounds.csv").write_text("round,loss\n1,0.5\n2,0.4\n3,0.3\n")
    third = sent.bring()
    assert state.whole_states(store) == [second, third]
    assert len(store.names(STATES)) == 2  # the late one went


def test_a_block_that_may_be_gone_is_sent_again(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Upload(store, folder)

    def lost(name: str) -> None:
        Store.remove(store, name)
        if name.startswith(BLOCKS):
            raise UnreachableError("the answer was lost")

    monkeypatch.setattr(store, "remove", lost)
    for text in ("x", "xy"):
        (folder / "rounds.csv").write_text(text)
        sent.bring()
    (folder / "rounds.csv").write_text("xyz")
    with pytest.raises(UnreachableError):
        sent.bring()  # and the block of "x" was removed
    monkeypatch.undo()
    (folder / "rounds.csv").write_text("x")
    assert state.whole_states(store)[-1] != sent.bring() == state.whole_states(store)[-1]


def test_no_call_takes_longer_than_its_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(PATIENCE, "call", 0.05)
    monkeypatch.setattr(store, "_files", SimpleNamespace(get_file_info=lambda selector: ended.wait(5.0)))
    with pytest.raises(UnreachableError, match=r"no answer within 0\.05 s"):
        store.names(STATES)
    ended.set()


def test_a_reader_who_may_list_names_alone_does_not_try_for_ever(
    store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Upload(store, folder).bring()
    calls: list[str] = []

    def denied(name: str, limit: int) -> bytes:
        calls.append(name)
        assert len(calls) < 200
        raise UnreachableError("access denied")

    monkeypatch.setattr(store, "get", denied)
    for name, seconds in {"first_pause": 0.01, "longest_pause": 0.01, "at_end": 0.1}.items():
        monkeypatch.setattr(PATIENCE, name, seconds)
    with pytest.raises(UnreachableError, match="access denied"):
        fetched(store, tmp_path / "copy")
