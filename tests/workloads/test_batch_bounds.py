from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.batch_bounds import KEEP, LastBatch, batch_bounds, samples_of_steps
from raysim.workloads.graphs.node_batch import NodeSamples, Subgraph

RULES = st.builds(
    LastBatch,
    rule=st.sampled_from(["keep", "merge", "drop"]),
    below=st.floats(0.0, 1.0, exclude_min=True),
)


def lengths(samples: int, size: int, last: LastBatch | None) -> list[int]:
    return [stop - start for start, stop in batch_bounds(samples, size, last)]


@settings(deadline=None, max_examples=300)
@given(samples=st.integers(0, 300), size=st.integers(1, 60), last=RULES)
def test_a_training_pass(samples: int, size: int, last: LastBatch) -> None:
    bounds, sizes = batch_bounds(samples, size, last), lengths(samples, size, last)
    seen = [index for start, stop in bounds for index in range(start, stop)]
    assert seen == list(range(len(seen)))
    assert len(seen) == (samples if last.rule != "drop" or samples < size else samples - samples % size)
    assert bool(seen) == (samples > 0)  # no client's epoch is empty
    assert all(length == size for length in sizes[:-1])
    assert max(sizes, default=0) <= last.largest(size)
    if sizes and sizes[-1] > size:
        more = sizes[-1] - size
        assert more == 1 or (last.rule == "merge" and more < last.below * size)
    if len(sizes) > 1 and size > 1:
        assert sizes[-1] >= 2  # a single sample joins
        if last.rule == "merge":
            assert sizes[-1] >= last.below * size


@pytest.mark.parametrize("samples", [30, 32, 33, 50, 64, 70])
@pytest.mark.parametrize("rule", ["keep", "merge", "drop"])
def test_arrays_and_nodes_are_cut_there(samples: int, rule: Literal["keep", "merge", "drop"]) -> None:
    """With 50 samples and ``drop`` the one mini-batch had all 50 in the place of 32."""
    expected, last = lengths(samples, 32, LastBatch(rule)), LastBatch(rule)
    arrays = ArraySamples(np.arange(samples, dtype=np.float32), np.zeros(samples, np.int64), "cpu")
    nodes = torch.arange(samples)
    graph = Subgraph(torch.zeros(samples, 1), torch.zeros(2, 0, dtype=torch.int64))
    for found in (arrays, NodeSamples(graph, nodes, nodes)):
        batches = found.batches(32, torch.Generator().manual_seed(0), last)
        assert [len(batch) for batch in batches] == expected


@given(samples=st.integers(0, 300), size=st.integers(1, 60))
def test_a_pass_of_an_evaluation_has_every_sample_and_no_larger_batch(samples: int, size: int) -> None:
    assert lengths(samples, size, None) == [size] * (samples // size) + [samples % size] * (samples % size > 0)


@given(size=st.integers(1, 200), last=RULES)
def test_the_largest_mini_batch_is_reached(size: int, last: LastBatch) -> None:
    assert last.largest(size) == max(max(lengths(size + rest, size, last)) for rest in range(size))


@pytest.mark.parametrize(
    ("samples", "size", "rule", "expected"),
    [
        (203, 50, "merge", [50, 50, 50, 53]),
        (203, 50, "keep", [50, 50, 50, 50, 3]),
        (203, 50, "drop", [50, 50, 50, 50]),
        (53, 50, "merge", [53]),
        (62, 50, "merge", [62]),  # 12 < 0.25 · 50
        (63, 50, "merge", [50, 13]),
        (9, 4, "keep", [4, 5]),  # the single sample joins, as it always did
        (9, 4, "drop", [4, 4]),
        (3, 4, "drop", [3]),
        (3, 1, "keep", [1, 1, 1]),
        (3, 1, "merge", [1, 1, 1]),
        (1, 4, "merge", [1]),
        (0, 4, "drop", []),
    ],
)
def test_by_hand(samples: int, size: int, rule: Literal["keep", "merge", "drop"], expected: list[int]) -> None:
    assert lengths(samples, size, LastBatch(rule)) == expected


def test_a_batch_size_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        batch_bounds(4, 0, KEEP)


@settings(deadline=None)
@given(samples=st.integers(0, 60), size=st.integers(1, 20), last=RULES, steps=st.integers(0, 30))
def test_samples_of_steps_are_those_that_as_many_mini_batches_have(
    samples: int, size: int, last: LastBatch, steps: int
) -> None:
    one = lengths(samples, size, last)
    assert samples_of_steps(samples, size, last, steps) == sum((one * 30)[:steps] if steps else one)


def test_samples_are_cut_by_the_rule() -> None:
    import numpy as np

    data = ArraySamples(np.arange(10, dtype=np.float32), np.zeros(10, np.int64), "cpu")

    def sizes(last: LastBatch | None, shuffled: bool) -> list[int]:
        generator = torch.Generator().manual_seed(0) if shuffled else None
        return [len(batch) for batch in data.batches(4, generator, last)]

    assert sizes(LastBatch("merge", 0.75), True) == [4, 6]
    assert sizes(LastBatch("drop"), True) == [4, 4]
    assert sizes(None, True) == sizes(None, False) == [4, 4, 2]
    assert [len(batch) for batch in data.batches(3, torch.Generator())] == [3, 3, 4]  # a single sample joins
    assert [len(batch) for batch in data.batches(3)] == [3, 3, 3, 1]  # but where nothing is trained
