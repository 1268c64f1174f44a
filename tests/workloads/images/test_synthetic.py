from __future__ import annotations

import numpy as np

from raysim.workloads.images.synthetic import Synthetic
from tests.workloads.conftest import Stream


def test_cifar_shape_balanced_and_called_synthetic(stream: Stream) -> None:
    federation = Synthetic(train_size=500, test_size=100, clients=5).load(stream)
    assert federation.synthetic
    assert federation.name == "synthetic"
    assert federation.manifest().attrs["synthetic"] is True
    assert federation.input_spec(0).input_shape == (3, 32, 32)
    assert np.bincount(federation.labels).tolist() == [50] * 10
    assert federation.global_test_size == 100
    again = Synthetic(train_size=500, test_size=100, clients=5).load(stream)
    assert np.array_equal(federation.inputs, again.inputs)


def test_any_size(stream: Stream) -> None:
    options = Synthetic(train_size=60, test_size=7, classes=3, channels=1, height=9, width=2, noise=0.0, clients=2)
    federation = options.load(stream)
    assert federation.inputs.shape == (60, 9, 2, 1)
    assert federation.test_inputs.shape == (7, 9, 2, 1)
    assert federation.input_spec(0).classes == 3


def test_structure_can_be_learned(stream: Stream) -> None:
    images = Synthetic(train_size=1000, test_size=300).images(stream)
    train, test = (part.reshape(len(part), -1).astype(float) for part in (images.images, images.test_images))
    centers = np.stack([train[images.labels == label].mean(axis=0) for label in range(10)])
    guesses = ((test[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.5 < (guesses == images.test_labels).mean() <= 1.0
    assert 0.02 < ((images.images == 0) | (images.images == 255)).mean() + 0.02 < 0.12  # little is clipped
