"""Checkpoints that take over what has not changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.errors import CheckpointError
from raysim.storage import checkpoint, state_files
from raysim.storage.client_shards import ClientFiles
from raysim.storage.state_files import read_pair
from tests.state_equality import equal


class Run:
    """States of clients, and checkpoints of them; ``fetched`` are the clients that a save has asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files, self.round = folder, ClientFiles(), 0
        self.states: dict[int, Any] = {}
        self.changed: set[int] = set()
        self.fetched: list[int] = []

    def do_tasks_of(self, *clients: int) -> None:
        for client in clients:
            before = self.states.get(client, np.full(3, float(client)))
            self.states[client] = before + 0.5
            self.changed.add(client)

    def save(self) -> Path:
        def fetch(client: int) -> object:
            self.fetched.append(client)
            return self.states[client]

        self.round += 1
        self.fetched.clear()
        path = checkpoint.save(self.folder, self.round, None, self.changed, fetch, {}, 1, self.files)
        self.changed.clear()
        return path

    def resume(self) -> None:
        found = checkpoint.load(checkpoint.newest_first(self.folder)[0], None, lambda client: np.zeros(3))
        assert equal(found.client_states, self.states)
        self.files = found.files


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(
        st.one_of(st.frozensets(st.integers(0, 9), min_size=1, max_size=5), st.sampled_from(["save", "resume"])),
        max_size=25,
    )
)
def test_whatever_came_before_the_newest_states_come_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    run = Run(tmp_path_factory.mktemp("run"))
    for step in steps:
        if step == "save":
            path = run.save()
            run.resume()
            written = sum(len(state_files.read_pair(path, file.stem)[0]) for file in path.glob("clients-*.json"))
            assert written <= 2 * len(run.states)
        elif step == "resume" and run.round and not run.changed:
            run.resume()
        elif step != "resume":
            run.do_tasks_of(*step)
    run.save()
    run.resume()


def test_a_checkpoint_writes_what_has_changed_and_links_the_rest(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do_tasks_of(*range(10))
    first = run.save()
    old = (first / "clients-00000.safetensors").stat().st_ino
    run.do_tasks_of(2, 30)
    second = run.save()
    assert run.fetched == [2, 30]
    assert not first.exists()  # keep = 1
    assert (second / "clients-00000.safetensors").stat().st_ino == old
    run.resume()
    run.do_tasks_of(5)
    run.save()
    assert run.fetched == [5]
    run.resume()


def test_a_file_of_which_less_than_half_is_in_use_is_written_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do_tasks_of(*range(5))
    run.save()
    run.do_tasks_of(0, 1)
    assert [file.name for file in sorted(run.save().glob("clients-*.json"))] == [
        "clients-00000.json",
        "clients-00001.json",
    ]
    run.do_tasks_of(2)
    third = run.save()
    assert run.fetched == [2, 3, 4]
    assert [file.name for file in sorted(third.glob("clients-*.json"))] == ["clients-00001.json", "clients-00002.json"]
    run.resume()


def test_where_nothing_can_be_linked_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    run = Run(tmp_path)
    run.do_tasks_of(0, 1, 2)
    run.save()
    run.do_tasks_of(1)
    run.save()
    assert run.fetched == [1]
    run.resume()


def test_a_checkpoint_that_somebody_removed_is_not_missed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do_tasks_of(0, 1, 2)
    shutil.rmtree(run.save())
    run.do_tasks_of(1)
    run.save()
    assert run.fetched == [0, 1, 2]
    run.resume()


def test_a_save_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    run.do_tasks_of(0, 1, 2)
    first = run.save()
    run.do_tasks_of(1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(CheckpointError, match="No space left"):
            run.save()
    assert list(tmp_path.iterdir()) == [first]
    run.save()
    assert run.fetched == [0, 1, 2]
    run.resume()


def test_states_are_handed_over_one_file_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "SHARD_BYTES", 50)  # two states
    run = Run(tmp_path)
    run.do_tasks_of(*range(6))
    path = run.save()
    events: list[str] = []

    def reads(path: Path, stem: str) -> Any:
        events.append(stem)
        return read_pair(path, stem)

    monkeypatch.setattr(checkpoint, "read_pair", reads)
    found = checkpoint.load(path, None, lambda client: np.zeros(3), hold=lambda state: events.append("held"))
    assert events == ["server", *(e for n in (2, 1, 0) for e in (f"clients-0000{n}", "held", "held"))]
    assert found.client_states == dict.fromkeys(range(6))


def test_the_servers_earlier_states_are_links_too(tmp_path: Path) -> None:
    states = {number: np.full(3, float(number)) for number in (1, 2, 3, 4)}

    def save(number: int, earlier: list[int], files: ClientFiles) -> Path:
        before = {other: states[other] for other in earlier}
        return checkpoint.save(tmp_path, number, states[number], (), states.__getitem__, {}, 1, files, before)

    def load(path: Path) -> checkpoint.Checkpoint:
        return checkpoint.load(path, np.zeros(3), lambda client: np.zeros(3))

    files = ClientFiles()
    own = (save(1, [], files) / "server.safetensors").stat().st_ino
    second = save(2, [1], files)
    third = save(3, [1, 2], load(second).files)  # as after a resume
    assert (third / "server-after-1.safetensors").stat().st_ino == own
    found = load(third)
    assert equal(found.earlier, {1: states[1], 2: states[2]})
    (third / "server-after-1.json").unlink()
    fourth = load(save(4, [1, 3], found.files))  # it is written again
    assert equal(fourth.earlier, {1: states[1], 3: states[3]}) and equal(fourth.server, states[4])
