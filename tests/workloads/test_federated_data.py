from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.federated_data import NO_SAMPLES, ClientData, InputSpec, batch_bounds


@settings(deadline=None, max_examples=50)
@given(samples=st.integers(0, 200), size=st.integers(1, 50), training=st.booleans())
def test_batches_cover_everything_and_training_never_has_one_sample(samples: int, size: int, training: bool) -> None:
    bounds = batch_bounds(samples, size, training)
    assert [index for start, stop in bounds for index in range(start, stop)] == list(range(samples))
    lengths = [stop - start for start, stop in bounds]
    assert all(length >= 1 for length in lengths)
    if training and samples > 1:
        assert min(lengths) >= 2
        assert max(lengths) <= max(size, 2) + 1
    else:
        assert all(length <= max(size, 2) for length in lengths)


def test_a_single_rest_joins_the_batch_before() -> None:
    assert batch_bounds(9, 4, training=True) == [(0, 4), (4, 9)]
    assert batch_bounds(9, 4, training=False) == [(0, 4), (4, 8), (8, 9)]
    assert batch_bounds(10, 4, training=True) == [(0, 4), (4, 8), (8, 10)]
    assert batch_bounds(1, 4, training=True) == [(0, 1)]
    assert batch_bounds(5, 1, training=True) == [(0, 2), (2, 5)]
    assert batch_bounds(0, 4, training=True) == []


def test_batch_size_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        batch_bounds(4, 0, training=True)


def test_a_task_is_of_arrays_and_validation_empty_unless_said() -> None:
    assert InputSpec((3, 8, 8), 10) == InputSpec((3, 8, 8), 10, "array")
    assert InputSpec((7,), 2, "graph") != InputSpec((7,), 2)
    data = ClientData(0, "one", NO_SAMPLES, NO_SAMPLES)
    assert (len(data.validation), list(data.validation.batches(4)), data.samples) == (0, [], 0)
