"""Working folders and copies of remote runs while several processes want them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.remote import download
from raysim.remote.places import resumed_folder, run_folder
from raysim.remote.store import Store
from raysim.remote.upload import Upload
from raysim.storage import claims, process_lock
from raysim.storage.atomic_files import write_atomically


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A remote run, in a folder of this machine through fsspec."""
    monkeypatch.chdir(tmp_path)
    address = f"file://{tmp_path}/there/run"
    send(address, "round,loss\n")
    return address


def send(address: str, rounds: str) -> None:
    """Write a next state, as another machine does."""
    folder = Path("sent")
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text("seed: 0\n")
    (folder / "rounds.csv").write_text(rounds)
    store = Store(address)
    Upload(store, folder).bring()


@pytest.mark.parametrize("reader", [run_folder, resumed_folder])
def test_readers_of_one_address_do_not_disturb_each_other(
    address: str, reader: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "SECONDS", 0.01)
    found: list[Path] = []
    second = threading.Thread(target=lambda: found.append(reader(address)))

    def write(path: Path, parts: Iterator[bytes]) -> None:
        write_atomically(path, parts if second.ident else first_then_wait(parts))

    def first_then_wait(parts: Iterator[bytes]) -> Iterator[bytes]:
        for part in parts:
            yield part
            second.start()
            second.join(0.5)  # it waits, or is done and has taken the unfinished file away

    monkeypatch.setattr(download, "write_atomically", write)
    found.append(reader(address))
    second.join(20)
    assert len(found) == 2 and found[0] == found[1]
    assert (found[0] / "config.yaml").read_text() == "seed: 0\n"


def test_a_folder_of_which_no_copy_can_be_made_is_said(address: str) -> None:
    Path("runs").write_text("no folder")
    with pytest.raises(ResultsError, match="Cannot write runs"):
        run_folder(address)


@pytest.mark.parametrize("lock", [process_lock.launching, process_lock.driving])
def test_a_folder_in_which_a_process_is_at_work_is_not_put_aside(
    address: str, lock: Callable[[Path], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_lock, "LAUNCHER_SECONDS", 0.1)
    monkeypatch.setattr(process_lock, "DRIVER_SECONDS", 0.1)
    folder = resumed_folder(address)
    send(address, "round,loss\n1,0.5\n")  # by another machine that goes on
    with lock(folder), pytest.raises(ResultsError, match=rf"{folder}: .* at work on this run"):
        resumed_folder(address)
    assert [*folder.parent.iterdir()] == [folder]
    assert resumed_folder(address) == folder  # no process is at work there any more
    assert folder.with_name(f"{folder.name}-2").is_dir()
    assert (folder / "rounds.csv").read_text() == "round,loss\n1,0.5\n"
