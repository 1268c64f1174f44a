from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import NO_SAMPLES, ClientData, InputSpec


def test_a_task_is_of_arrays_and_validation_empty_unless_said() -> None:
    assert InputSpec((3, 8, 8), 10) == InputSpec((3, 8, 8), 10, "array")
    assert InputSpec((7,), 2, "graph") != InputSpec((7,), 2)
    data = ClientData(0, "one", NO_SAMPLES, NO_SAMPLES)
    assert (len(data.validation), list(data.validation.batches(4)), data.samples) == (0, [], 0)


def test_class_counts_are_of_all_training_samples() -> None:
    """Of every one of them, also where they are more than are looked at together, and of no test sample."""
    labels = np.array([2, 0, 2, 2] * 300 + [0])
    train = ArraySamples(np.zeros((len(labels), 1), np.float32), labels, "cpu")
    test = ArraySamples(np.zeros((1, 1), np.float32), np.array([1]), "cpu")
    counts = ClientData(0, "one", train, test).class_counts(4)
    assert counts.dtype == np.int64 and counts.tolist() == [301, 0, 900, 0]
    assert ClientData(0, "one", NO_SAMPLES, test).class_counts(2).tolist() == [0, 0]


@pytest.mark.parametrize("labels", [np.array([0.5, 1.0], np.float32), np.array([[0, 1], [1, 1]])])
def test_labels_that_name_no_class_cannot_be_counted(labels: Any) -> None:
    data = ClientData(3, "one", ArraySamples(np.zeros((2, 1), np.float32), labels, "cpu"), NO_SAMPLES)
    with pytest.raises(ValueError, match=r"client 3: .* one number of a class for each sample, .*classification=True"):
        data.class_counts(2)


def test_classes_that_the_task_does_not_have_are_named() -> None:
    data = ClientData(3, "one", ArraySamples(np.zeros((2, 1), np.float32), np.array([1, 5]), "cpu"), NO_SAMPLES)
    with pytest.raises(ValueError, match=r"client 3: a label is 5, and there are 4 classes"):
        data.class_counts(4)
