"""Runs with a remote folder that come to nothing before their first round."""

from __future__ import annotations

from pathlib import Path

import pytest

import raysim
from raysim.engine.observer import Silent
from raysim.errors import ResultsError
from raysim.remote.address import local_folder
from raysim.remote.state import whole_states
from raysim.remote.store import Store
from raysim.remote.upload import Upload
from raysim.running.mirrored import mirrored
from tests.small_runs import IN_PROCESS, LOGISTIC


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A remote folder of which there is nothing, through fsspec."""
    monkeypatch.chdir(tmp_path)
    return f"file://{tmp_path}/there/run"


def test_a_second_new_run_at_an_address_is_refused(address: str) -> None:
    first = Upload(Store(address), raysim.run(IN_PROCESS | LOGISTIC, output="first", rounds=1).folder).bring()
    second = raysim.run(IN_PROCESS | LOGISTIC, output="second", rounds=1).folder  # it had found nothing at the address
    with pytest.raises(ResultsError, match="already holds a run"), mirrored(address, second, Silent(), resumed=False):
        pass
    assert not second.exists()
    assert whole_states(Store(address)) == [first]


def test_a_run_interrupted_while_its_first_state_is_sent_takes_its_folder_back(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Upload) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Upload, "bring", interrupt)
    with pytest.raises(KeyboardInterrupt):
        raysim.run(IN_PROCESS | LOGISTIC, output=address)
    assert not local_folder(address).exists()
