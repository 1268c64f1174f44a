from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.signals.har import Har
from tests.small_runs import small_run
from tests.workloads.conftest import needs_data
from tests.workloads.conftest import seeded as stream


@pytest.fixture
def arrays() -> dict[str, Any]:
    """Two people with ten windows each of activity 0, the windows of the first person all 1, of the second all 3."""
    windows = np.repeat([1.0, 3.0], 10)[:, None, None] * np.ones((20, 128, 9))
    return {
        "train_x": windows[:10].astype(np.float16),
        "train_labels": np.zeros(10, np.uint8),
        "train_sites": np.repeat("person-01", 10),
        "test_x": windows[10:].astype(np.float16),
        "test_labels": np.zeros(10, np.uint8),
        "test_sites": np.repeat("person-02", 10),
    }


def saved(arrays: dict[str, Any], path: Path) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_people_are_clients_with_the_ends_of_their_windows_as_tests(arrays: dict[str, Any], tmp_path: Path) -> None:
    federation = Har(path=saved(arrays, tmp_path / "har.npz")).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["person-01", "person-02"]
    assert table[["samples", "test_samples"]].to_numpy().tolist() == [[7, 2], [7, 2]]  # one overlaps
    assert federation.input_spec(0).input_shape == (9, 128)
    assert set(np.unique(federation.inputs)) == {-1.0, 1.0}  # mean 2, deviation 1


def test_published_people_are_not_trained_on(arrays: dict[str, Any], tmp_path: Path) -> None:
    arrays["train_x"][5:] = 5.0  # mean 3, deviation 2, of the training windows alone
    path = saved(arrays, tmp_path / "har.npz")
    federation = Har(path=path, persons="published", partition="iid", clients=2, min_samples=1).load(stream)
    assert federation.train.total(2) + federation.local_test.pooled().total(1) == 10
    assert federation.global_test_size == 10 and set(np.unique(federation.test_inputs)) == {0.0}


def test_ends_of_recordings_are_local_tests_of_those_who_train(arrays: dict[str, Any], tmp_path: Path) -> None:
    arrays["train_x"][5:] = 5.0
    federation = Har(path=saved(arrays, tmp_path / "har.npz"), persons="published").load(stream)
    assert federation.train.of(0).tolist() == list(range(7))
    assert federation.local_test.of(0).tolist() == [8, 9]


def test_the_packed_file_is_the_unpacked_one(arrays: dict[str, Any], tmp_path: Path) -> None:
    packed = {
        "signal": np.repeat([1.0, 3.0], 128)[:, None].repeat(9, axis=1).astype(np.float16),
        "start": np.repeat([0, 128], 10),
        "labels": np.zeros(20, np.uint8),
        "subjects": np.repeat([1, 2], 10),
        "split": np.repeat(["train", "test"], 10),
    }
    one, other = (
        Har(path=saved(content, tmp_path / f"{name}.npz")).load(stream)
        for name, content in (("packed", packed), ("plain", arrays))
    )
    assert np.array_equal(one.inputs, other.inputs) and np.array_equal(one.labels, other.labels)
    assert one.client_names.tolist() == other.client_names.tolist()


@pytest.mark.slow
@needs_data
def test_one_command_on_thirty_people(tmp_path: Path) -> None:
    base = {"workload.name": "har", "schedule.rounds": 2, "schedule.local_epochs": 1}
    result = run(small_run(tmp_path / "run", base, schedule__sampling_rate=0.3, training__batch_size=16))
    assert result.rounds["accuracy"].iloc[-1] > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train_labels": None}, "is no file of UCI HAR .KeyError: 'train_labels'.; its arrays are train_x"),
        ({"train_x": np.zeros((10, 64, 9))}, "is no file of UCI HAR"),
        ({"train_labels": np.full(10, 6)}, r"a label outside 0\.\.5"),
        ({"train_x": np.full((10, 128, 9), np.nan)}, "a value that is not finite"),
    ],
)
def test_files_of_something_else(change: dict[str, Any], words: str, arrays: dict[str, Any], tmp_path: Path) -> None:
    content = {key: value for key, value in (arrays | change).items() if value is not None}
    with pytest.raises(WorkloadError, match=words):
        Har(path=saved(content, tmp_path / "har.npz")).load(stream)


def test_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path))
    with pytest.raises(WorkloadError, match=r"there is no .*har\.npz and no .*uci-har\.npz; python -m raysim\.data"):
        Har().load(stream)
    monkeypatch.delenv("RAYSIM_DATA")
    with pytest.raises(WorkloadError, match="har: option path is empty and RAYSIM_DATA is not set"):
        Har().load(stream)
