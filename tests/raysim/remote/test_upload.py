"""States of a folder beside those of other processes: what the folder does not come from is never replaced."""

from __future__ import annotations

from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from raysim.remote import upload
from raysim.remote.download import download
from raysim.remote.state import State, whole_states
from raysim.remote.store import Store
from raysim.remote.upload import ConflictError, Upload
from raysim.storage.folder_files import open_file


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Objects in a folder of this machine, through fsspec."""
    return Store(f"file://{tmp_path}/there/run")


def a_folder(path: Path, rounds: int) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.yaml").write_text("seed: 0\n")
    (path / "rounds.csv").write_text("".join(f"{row}\n" for row in ("round", *range(rounds))))
    return path


def test_a_state_that_came_since_the_folder_was_read_is_kept(store: Store, tmp_path: Path) -> None:
    here, there = a_folder(tmp_path / "here", 1), tmp_path / "copy"
    first = Upload(store, here)
    first.bring()
    download(store, there)
    a_folder(here, 4)
    newest = first.bring()
    a_folder(there, 2)
    with pytest.raises(ConflictError):
        Upload(store, there)
    assert whole_states(store)[-1] == newest
    a_folder(here, 5)
    assert Upload(store, here).bring().number == 3  # after a restart: the folder comes from these states


def test_rounds_that_end_while_files_are_sent_are_left_to_the_next_state(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clients.csv was sent before a round ended, and proof.jsonl after it: the state did not agree with its proof."""
    here, names = a_folder(tmp_path / "here", 1), ("clients.csv", "rounds.csv", "proof.jsonl")

    def a_round_ends() -> None:
        for name in names:
            with (here / name).open("a") as file:
                file.write("a round\n")

    def slow(path: Path, **options: Any) -> FileIO:
        a_round_ends()
        return open_file(path, **options)

    a_round_ends()
    sender = Upload(store, here)
    with monkeypatch.context() as patched:
        patched.setattr(upload, "open_file", slow)
        sender.bring()
    download(store, tmp_path / "first")
    assert [(tmp_path / "first" / name).read_text().count("a round") for name in names] == [1, 1, 1]
    sender.bring()
    download(store, tmp_path / "second")
    assert all((tmp_path / "second" / name).read_bytes() == (here / name).read_bytes() for name in names)


def test_a_new_run_goes_to_no_address_that_holds_one(store: Store, tmp_path: Path) -> None:
    held = Upload(store, a_folder(tmp_path / "here", 1)).bring()
    with pytest.raises(ConflictError):
        Upload(store, a_folder(tmp_path / "other", 1))
    assert whole_states(store) == [held]


def test_a_state_that_comes_while_others_are_read_is_a_conflict(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Upload(store, a_folder(tmp_path / "here", 1))
    first.bring()
    there = tmp_path / "copy"
    download(store, there)

    def slow(read: Store) -> list[State]:
        found = whole_states(read)
        a_folder(tmp_path / "here", 2)
        first.bring()
        return found

    monkeypatch.setattr(upload, "whole_states", slow)
    second = Upload(store, there)
    with pytest.raises(ConflictError):
        second.bring()
