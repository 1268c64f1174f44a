from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.config.registry import resolve
from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.federation import ImageFederation
from raysim.workloads.images.medical import CovidXray, RetinaMnist
from tests.workloads.conftest import Stream

Save = Callable[[dict[str, Any]], Path]
needs_data = pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")


def test_sites_are_clients_and_images_are_resized_once(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    arrays |= {"train_labels": np.arange(40) % 3, "test_labels": np.arange(12) % 3}
    stored = CovidXray(path=str(save(arrays)))
    small = replace(stored, size=4).load(stream)
    assert small.manifest()["name"].tolist() == ["east", "north", "south"]
    assert small.class_names == ("covid", "normal", "pneumonia")
    assert small.inputs.dtype == np.uint8
    assert (small.inputs.shape, small.test_inputs.shape) == ((40, 4, 4, 3), (12, 4, 4, 3))
    assert small.input_spec(0).input_shape == (3, 4, 4)
    assert np.array_equal(stored.load(stream).inputs, arrays["train_images"])


def test_training_and_test_images_may_be_drawn_anew(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    arrays |= {"train_labels": np.arange(40) % 3, "test_labels": np.arange(12) % 3}
    options = CovidXray(path=str(save(arrays)), draw_test=True)
    found, stored = options.load(stream), replace(options, draw_test=False).load(stream)
    assert len(found.labels) + len(found.test_labels) == 52 and 8 <= len(found.test_labels) <= 16

    def rows(federation: ImageFederation) -> list[tuple[bytes, int]]:
        pairs = ((federation.inputs, federation.labels), (federation.test_inputs, federation.test_labels))
        return sorted(
            (image.tobytes(), int(label))
            for images, labels in pairs
            for image, label in zip(images, labels, strict=True)
        )

    assert rows(found) == rows(stored) and not np.array_equal(found.test_inputs, stored.test_inputs)
    other = options.load(lambda purpose: np.random.default_rng(99))
    assert not np.array_equal(found.test_inputs, other.test_inputs)
    sketched = options.sketch(stream)
    assert sketched is not None and np.array_equal(sketched.labels, found.labels)


def test_grades_may_be_healthy_and_diseased(arrays: dict[str, Any], save: Save, stream: Stream) -> None:
    arrays |= {"train_labels": np.arange(40) % 5, "test_labels": np.arange(12) % 5}
    options = RetinaMnist(path=str(save(arrays)), clients=2, partition="iid", binary_grades=True)
    found = options.load(stream)
    assert found.class_names == ("healthy", "diseased") and found.labels.dtype == np.int64
    assert np.array_equal(found.labels, [0, 1, 1, 1, 1] * 8) and np.array_equal(
        found.test_labels, [0, 1, 1, 1, 1] * 2 + [0, 1]
    )
    sketched = options.sketch(stream)
    assert sketched is not None and np.array_equal(sketched.labels, found.labels)
    assert replace(options, binary_grades=False).load(stream).labels.max() == 4


def test_a_missing_file_is_explained(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> None:
    monkeypatch.delenv("RAYSIM_DATA", raising=False)
    with pytest.raises(WorkloadError, match=r"RAYSIM_DATA is not set.*Put MedMNIST's retinamnist\.npz"):
        RetinaMnist().load(stream)


@needs_data
@pytest.mark.parametrize(
    ("name", "options", "names", "samples", "tests", "shape"),
    [
        ("covid-xray", {"size": 28}, ["actualmed", "cohen", "figure1", "kaggle_covid19_3class"], 353, 89, (1, 28, 28)),
        ("retinamnist", {}, [f"client {number}" for number in range(5)], 1080, 400, (3, 28, 28)),
    ],
)
def test_real_files(
    name: str,
    options: dict[str, Any],
    names: list[str],
    samples: int,
    tests: int,
    shape: tuple[int, ...],
    stream: Stream,
) -> None:
    federation = resolve("workload", name)(**options).load(stream)
    table = federation.manifest()
    assert table["name"].tolist() == names
    assert len(federation.labels) == samples
    assert federation.global_test_size == tests
    assert next(iter(federation.client(0, "cpu").train.batches(8))).x.shape[1:] == shape
