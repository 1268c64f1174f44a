from __future__ import annotations

import gc
import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from raysim.engine import update_spill as landing_module
from raysim.engine.update_spill import ALIGNMENT, UpdateSpill, usable_memory
from raysim.errors import ResultsError
from raysim.exchange.payload import Failure, TrainedChunk
from raysim.method import Update
from raysim.storage import pytree
from tests.state_equality import equal

CONTENT = st.one_of(
    st.none(),
    st.floats(),
    arrays.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.bool_]), arrays.array_shapes(min_dims=0, min_side=0)
    ),
)


@settings(deadline=None, max_examples=40)
@given(
    results=st.lists(st.dictionaries(st.text(), CONTENT, max_size=4), max_size=5),
    room=st.integers(0, 200),
    pages=st.integers(1, 3),
)
def test_every_result_comes_back_with_its_bits(
    tmp_path_factory: pytest.TempPathFactory, results: list[dict[str, object]], room: int, pages: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landing_module, "SEGMENT", pages * mmap.ALLOCATIONGRANULARITY)
        landing = UpdateSpill(room, tmp_path_factory.mktemp("run"))
        taken = [landing.take(result) for result in results]
    for result, found in zip(results, taken, strict=True):
        assert equal(found, result)
        for _, leaf in pytree.leaves(found):
            assert not isinstance(leaf, np.ndarray) or leaf.flags.aligned


def test_what_does_not_fit_is_in_a_file_that_leaves_nothing_behind(tmp_path: Path) -> None:
    blocks = [
        TrainedChunk((Update(np.full(1000, k, np.float32), {"loss": 0.5}), Failure(3, "train", "?")), (), (0.1, 0.2))
        for k in range(3)
    ]
    landing = UpdateSpill(pytree.nbytes(blocks[0]), tmp_path)
    assert landing.take(blocks[0]) is blocks[0]
    moved = [landing.take(block) for block in blocks[1:]]
    assert list(tmp_path.iterdir()) == []
    del landing
    gc.collect()
    for block, found in zip(blocks[1:], moved, strict=True):
        assert equal(found, block)
        delta = found.updates[0].delta
        assert delta.ctypes.data % ALIGNMENT == 0
        with pytest.raises(ValueError, match="read-only"):
            delta[0] = 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    landing = UpdateSpill(0, tmp_path / "absent")
    with pytest.raises(ResultsError, match=r"absent: the updates of this round do not fit .*--sampling_rate"):
        landing.take({"x": np.zeros(3)})


def test_many_results_hold_few_file_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_module, "SEGMENT", 1 << 20)
    before = len(list(Path("/proc/self/fd").iterdir()))
    landing = UpdateSpill(0, tmp_path)
    results = [{"x": np.full(25_000, k, np.float32)} for k in range(40)]  # 4 MB
    taken = [landing.take(result) for result in results]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 6
    assert equal(taken, results)


def test_a_result_larger_than_a_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_module, "SEGMENT", mmap.ALLOCATIONGRANULARITY)
    landing = UpdateSpill(0, tmp_path)
    results = [{"x": np.arange(size, dtype=np.float64)} for size in (100, 5000, 3)]
    assert equal([landing.take(result) for result in results], results)


def test_a_containers_memory_counts_where_it_is_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container of 8 GB on a large machine nothing was spilled before the system ended the run."""
    limits = tmp_path / "memory.max", tmp_path / "none"
    monkeypatch.setattr(landing_module, "LIMITS", limits)
    whole = usable_memory()
    for text, expected in (("max\n", whole), (f"{2 * whole}\n", whole), (f"{8 << 20}\n", 8 << 20)):
        limits[0].write_text(text)
        assert usable_memory() == expected
