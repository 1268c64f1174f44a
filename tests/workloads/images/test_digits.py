from __future__ import annotations

import numpy as np
import pytest
import sklearn.datasets

from raysim.workloads.images import digits
from raysim.workloads.images.digits import Digits, bundled
from tests.workloads.conftest import Stream


def test_digits_split_off_a_stratified_fifth(stream: Stream) -> None:
    federation = Digits().load(stream)
    assert federation.clients == 10
    assert federation.input_spec(0).input_shape == (1, 8, 8)
    assert len(federation.labels) + federation.global_test_size == 1797
    train, test = np.bincount(federation.labels), np.bincount(federation.test_labels)
    assert np.array_equal(test, np.rint(0.2 * (train + test)))
    assert federation.inputs.max() == 255
    assert federation.inputs.min() == 0
    assert len(np.unique(federation.inputs)) == 17  # the set has 17 gray levels


def test_the_test_set_comes_from_its_stream(stream: Stream) -> None:
    one, two = Digits().load(stream), Digits(partition="iid", clients=3).load(stream)
    assert np.array_equal(one.test_inputs, two.test_inputs)
    other = Digits().load(lambda purpose: np.random.default_rng(5))
    assert not np.array_equal(one.test_inputs, other.test_inputs)


def test_the_bundled_file_is_read_as_scikit_learn_does(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sklearn.datasets.load_digits()
    for _ in range(2):
        found = bundled()
        assert np.array_equal(found[:, :-1], expected.data) and np.array_equal(found[:, -1], expected.target)
        # The second time as if the file were not where it is looked for.
        monkeypatch.setattr(digits, "find_spec", lambda name: None)
