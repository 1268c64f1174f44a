from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.running.simulation import run
from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.femnist import Femnist, leaf_images
from tests.small_runs import small_run
from tests.workloads.conftest import Stream
from tests.workloads.images.leaf import write_leaf


@pytest.fixture
def writers(tmp_path: Path) -> Path:
    """Two writers; class 0 is dark, class 61 bright."""

    def samples(count: int) -> tuple[list[Any], list[Any]]:
        labels = [0, 61] * (count // 2)
        return [[0.2 if label == 0 else 1.0] * 784 for label in labels], labels

    folder = tmp_path / "femnist"
    write_leaf(folder, "train", {"f0001_41": samples(20), "f0000_14": samples(12)})
    write_leaf(folder, "test", {"f0001_41": samples(4), "f0000_14": samples(2)})
    return folder


def test_writers_are_clients(writers: Path, stream: Stream) -> None:
    federation = Femnist(path=str(writers)).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == ["f0000_14", "f0001_41"]
    assert table[["samples", "test_samples"]].to_numpy().tolist() == [[12, 2], [20, 4]]
    assert (federation.input_spec(0).input_shape, federation.input_spec(0).classes) == ((1, 28, 28), 62)
    assert federation.class_names[61] == "z" and federation.class_names[10] == "A"
    assert federation.inputs[:2, 0, 0, 0].tolist() == [51, 255]


def test_the_converted_file_is_the_same(writers: Path, tmp_path: Path, stream: Stream) -> None:
    arrays: dict[str, Any] = leaf_images(writers)
    np.savez(tmp_path / "femnist.npz", **arrays)
    one, other = (Femnist(path=str(path)).load(stream) for path in (writers, tmp_path / "femnist.npz"))
    assert np.array_equal(one.inputs, other.inputs) and np.array_equal(one.train.of(1), other.train.of(1))


@pytest.mark.slow
def test_one_command_trains_leafs_network(writers: Path, tmp_path: Path) -> None:
    base = {"workload.name": "femnist", "workload.path": str(writers), "schedule.rounds": 2}
    result = run(small_run(tmp_path / "run", base, training__learning_rate=0.05))
    assert result.rounds["accuracy"].iloc[-1] == 1.0
    head: Any = result.model.head
    assert head.in_features == 2048


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([[0.5] * 700], [1], r"samples of user w are no images of 28x28 pixels"),
        ([[1.5] * 784], [1], "a pixel is outside 0 to 1"),
        ([[0.5] * 784], [[1]], "a label is no number"),
        ([[0.5] * 784], [62], r"train_labels holds 62, outside 0\.\.61"),
        ([], [], "holds no samples"),
    ],
)
def test_files_with_something_else(x: Any, y: Any, words: str, tmp_path: Path, stream: Stream) -> None:
    write_leaf(tmp_path, "train", {"w": (x, y)})
    write_leaf(tmp_path, "test", {"w": ([[0.5] * 784], [1])})
    with pytest.raises(WorkloadError, match=words):
        Femnist(path=str(tmp_path)).load(stream)


def test_no_files(tmp_path: Path, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYSIM_DATA", str(tmp_path))
    with pytest.raises(
        WorkloadError, match=r"no .*images/femnist\.npz and no .*femnist with train/\*\.json; python -m"
    ):
        Femnist().sketch(stream)
