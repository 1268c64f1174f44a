from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.workloads.errors import WorkloadError
from raysim.workloads.images.image_set import image_set, read_npz

Save = Callable[[dict[str, Any]], Path]


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "set.npz").touch()
    with pytest.raises(WorkloadError, match=r"set\.npz is empty \(0 bytes\)"):
        read_npz(tmp_path / "set.npz")


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_truncated_file(arrays: dict[str, Any], save: Save, share: float) -> None:
    path = save(arrays)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(WorkloadError, match="may be truncated; copy or download it again"):
        read_npz(path)


def test_damage_inside_names_the_array(arrays: dict[str, Any], save: Save) -> None:
    path = save(arrays)
    content = bytearray(path.read_bytes())
    content[400:420] = b"\x00" * 20  # in the compressed train_images
    path.write_bytes(content)
    with pytest.raises(WorkloadError, match="train_images cannot be read"):
        read_npz(path)


def test_shapes_that_are_accepted(arrays: dict[str, Any]) -> None:
    plain = image_set("set", arrays, "here")
    arrays["train_labels"] = arrays["train_labels"][:, None]
    column = image_set("set", arrays, "here")
    assert np.array_equal(plain.labels, column.labels)
    assert plain.labels.dtype == np.int64
    assert plain.class_names == ("0", "1", "2", "3")
    arrays["train_images"], arrays["test_images"] = arrays["train_images"][..., 0], arrays["test_images"][..., 0]
    assert image_set("set", arrays, "here").images.shape == (40, 8, 6, 1)


def test_validation_images_only_when_asked(arrays: dict[str, Any]) -> None:
    arrays["val_images"], arrays["val_labels"] = arrays["test_images"], arrays["test_labels"]
    assert len(image_set("set", arrays, "here").labels) == 40
    both = image_set("set", arrays, "here", use_val=True)
    assert np.array_equal(both.images, np.concatenate([arrays["train_images"], arrays["val_images"]]))
    assert np.array_equal(both.labels, np.concatenate([arrays["train_labels"], arrays["val_labels"]]))
    assert both.sites is None  # val_sites is not there, so the sites are not complete


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("train_images", None, r"no array train_images; found: test_images, test_labels, .*train_labels"),
        ("test_labels", None, r"no array test_labels"),
        ("train_images", np.zeros((40, 8, 6, 3)), r"train_images is float64 \(40, 8, 6, 3\); expected uint8"),
        ("train_images", np.zeros((40, 8, 6, 9), "u1"), r"train_images is uint8 \(40, 8, 6, 9\).*1 to 4 channels"),
        ("train_images", np.zeros((40, 144), "u1"), r"train_images is uint8 \(40, 144\)"),
        ("train_images", np.zeros((0, 8, 6, 3), "u1"), r"train_images has shape \(0, 8, 6, 3\): there are no samples"),
        ("test_images", np.zeros((12, 8, 8, 3), "u1"), r"test_images are \(8, 8, 3\).*train_images are \(8, 6, 3\)"),
        (
            "train_labels",
            np.zeros(39, "u1"),
            r"train_labels is uint8 \(39,\); expected .*40 images: \(40,\) or \(40, 1\)",
        ),
        ("train_labels", np.zeros((40, 14), "u1"), r"train_labels is uint8 \(40, 14\)"),
        ("train_labels", np.zeros(40), r"train_labels is float64"),
        ("train_labels", np.full(40, -1), r"train_labels holds -1, outside 0\.\."),
        ("test_labels", np.full(12, 4), r"test_labels holds 4, outside 0\.\.3 for 4 classes"),
        ("train_sites", np.array(["a"]), r"train_sites is <U1 \(1,\); expected strings of shape \(40,\)"),
    ],
)
def test_wrong_content_names_key_and_shape(arrays: dict[str, Any], key: str, value: Any, message: str) -> None:
    if value is None:
        del arrays[key]
    else:
        arrays[key] = value
    with pytest.raises(WorkloadError, match=f"here: {message}"):
        image_set("set", arrays, "here")


def test_a_given_number_of_classes_bounds_the_labels(arrays: dict[str, Any]) -> None:
    assert len(image_set("set", arrays, "here", classes=6).class_names) == 6
    with pytest.raises(WorkloadError, match=r"train_labels holds 3, outside 0\.\.2"):
        image_set("set", arrays, "here", classes=3)
