"""Working folders and copies of remote runs while several processes want them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from raysim.errors import ResultsError
from raysim.remote.places import resumed_folder
from raysim.remote.state import whole_states
from raysim.remote.store import Store
from raysim.remote.upload import Upload
from raysim.storage import process_lock


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
    Upload(store, folder, whole_states(store)).bring()


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
