from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.errors import CheckpointError
from raysim.storage import checkpoint, state_files
from raysim.storage.atomic_files import write_durably
from raysim.storage.client_shards import ClientFiles
from tests.raysim.storage.saved_checkpoints import FACTS, KEPT, SERVER, SERVER_TEMPLATE, Kept, Server, load, save
from tests.raysim.storage.test_pytree import trees
from tests.state_equality import equal


def assert_whole(path: Path, round: int) -> None:
    loaded = load(path)
    assert loaded.round == round
    assert loaded.facts == FACTS
    assert equal(loaded.server, SERVER)
    assert equal(loaded.client_states, KEPT)


def test_round_trip(tmp_path: Path) -> None:
    path = save(tmp_path / "deep" / "checkpoints", 12)
    assert path.name == "round-000012"
    assert checkpoint.newest_first(path.parent) == [path]
    assert checkpoint.read_manifest(path)["round"] == 12
    assert {file.suffix for file in path.iterdir()} == {".json", ".safetensors"}
    assert_whole(path, 12)
    assert load(path).server.weights.flags.writeable


@given(trees, st.lists(trees, max_size=3))
@settings(deadline=None, max_examples=40)
def test_any_tree_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, server: Any, kept: list[Any]
) -> None:
    path = checkpoint.save(
        tmp_path_factory.mktemp("c"), 1, server, range(len(kept)), kept.__getitem__, {}, 1, ClientFiles()
    )
    loaded = checkpoint.load(path, server, lambda client: kept[client])
    assert equal(loaded.server, server)
    assert equal(loaded.client_states, dict(enumerate(kept)))


def test_clients_are_read_lazily_and_written_in_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "SHARD_BYTES", 3000)
    written_before: list[int] = []

    def state(client: int) -> object:
        written_before.append(len(list(tmp_path.glob("*/clients-*.safetensors"))))
        return Kept(np.full(125, client, np.float64))  # 1000 bytes: three in a shard

    path = checkpoint.save(tmp_path, 1, SERVER, range(10), state, {}, 1, ClientFiles())
    assert written_before == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len(list(path.glob("clients-*.json"))) == 4
    kept = checkpoint.load(path, SERVER_TEMPLATE, lambda client: Kept(np.zeros(125))).client_states
    assert [int(kept[client].control[0]) for client in kept] == list(range(10))


def test_only_the_newest_stay(tmp_path: Path) -> None:
    for round in (1, 2, 3, 10):
        save(tmp_path, round, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["round-000003", "round-000010"]


def test_a_round_saved_again_replaces_the_first(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    again = save(tmp_path, 2)
    assert checkpoint.newest_first(tmp_path)[0] == again
    assert len(list(tmp_path.iterdir())) == 2
    assert_whole(again, 2)
    save(tmp_path, 3)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [again.name, "round-000003"]


def test_a_save_never_removes_itself_or_a_later_round(tmp_path: Path) -> None:
    save(tmp_path, 9, keep=1)
    path = save(tmp_path, 5, keep=1)
    assert path.exists() and (tmp_path / "round-000009").exists()


def test_no_checkpoint_yet(tmp_path: Path) -> None:
    assert checkpoint.newest_first(tmp_path / "absent") == []
    (tmp_path / "round-000001.partial").mkdir()
    assert checkpoint.newest_first(tmp_path) == []


def kill_points() -> list[tuple[int, float]]:
    return [(file, part) for file in range(5) for part in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(("file", "part"), kill_points())
def test_a_kill_at_any_byte_leaves_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: int, part: float
) -> None:
    """os._exit in a child, after ``file`` whole files and a part of the next: no clean-up can run."""
    save(tmp_path, 1)
    child = os.fork()
    if child == 0:
        count = 0
        whole = write_durably

        def torn(path: Path, data: bytes) -> None:
            nonlocal count
            if count == file:
                path.write_bytes(data[: int(len(data) * part)])
                os._exit(9)
            count += 1
            whole(path, data)

        monkeypatch.setattr(checkpoint, "write_durably", torn)
        save(tmp_path, 2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (tmp_path / "round-000002.partial").exists()
    assert_whole(checkpoint.newest_first(tmp_path)[0], 1)
    assert_whole(save(tmp_path, 2), 2)
    assert not list(tmp_path.glob("*.partial"))


def test_a_failing_client_state_leaves_nothing_behind(tmp_path: Path) -> None:
    save(tmp_path, 1)

    def state(client: int) -> object:
        if client:
            raise ConnectionError("actor lost")
        return Kept(np.zeros(2))

    with pytest.raises(ConnectionError, match="actor lost"):  # not mistaken for a full disk, although an OSError
        checkpoint.save(tmp_path, 2, SERVER, range(2), state, FACTS, 1, ClientFiles())
    assert [path.name for path in tmp_path.iterdir()] == ["round-000001"]


def test_a_checkpoint_that_is_set_aside_goes_when_its_round_is_saved_again(tmp_path: Path) -> None:
    save(tmp_path, 2)
    checkpoint.set_aside(save(tmp_path, 6))
    assert checkpoint.newest_first(tmp_path) == [tmp_path / "round-000002"]
    save(tmp_path, 4)
    assert (tmp_path / "round-000006.unusable").exists()
    save(tmp_path, 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["round-000004", "round-000006"]


@pytest.mark.parametrize("value", [np.zeros(2, np.complex128), np.array(["text"]), np.zeros(2, ">f4"), object()])
def test_what_cannot_be_saved_is_named(tmp_path: Path, value: Any) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be saved: server\.weights"):
        save(tmp_path, server=Server(value))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir"])
def test_a_full_disk_leaves_the_last_good_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    save(tmp_path, 1)

    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os if call == "fsync" else Path, call, full)
        with pytest.raises(
            CheckpointError, match=r"round 2 in .*No space left on device; .* [kMGT]?B are free there.*--resume"
        ):
            save(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["round-000001"]
    assert_whole(tmp_path / "round-000001", 1)


def test_a_real_limit_on_file_size(tmp_path: Path) -> None:
    """The operating system itself cuts the write short, in the middle of a file."""
    save(tmp_path, 1)
    script = (
        "import resource, sys, numpy, pathlib\n"
        "from raysim import errors\n"
        "from raysim.storage import checkpoint, client_shards\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try:\n"
        "    files = client_shards.ClientFiles()\n"
        "    checkpoint.save(pathlib.Path(sys.argv[1]), 2, numpy.zeros(9000), [], dict, {}, 1, files)\n"
        "except errors.CheckpointError as error:\n"
        "    sys.exit(f'refused: {error}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(f"refused: Cannot save the checkpoint of round 2 in {tmp_path}: File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["round-000001"]
    assert_whole(tmp_path / "round-000001", 1)
