from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import torch

from raysim.workloads.arrays import array_samples
from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.federated_data import Federation, InputSpec
from raysim.workloads.splits.partition import Common, cut, iid

COUNT, TESTS = 30, 6


def build(dtype: str = "float32", **changed: object) -> ArrayFederation:
    """Three clients; input j is j, and j - 100 in the test set."""
    train, local_test = cut(iid(COUNT, 3, 5, np.random.default_rng(0)), 0.2, np.random.default_rng(1))
    parts: dict[str, object] = {
        "name": "numbers",
        "inputs": np.arange(COUNT).astype(dtype).reshape(COUNT, 1),
        "labels": np.arange(COUNT) % 2,
        "test_inputs": (np.arange(TESTS) + 100).astype(dtype).reshape(TESTS, 1),
        "test_labels": np.arange(TESTS) % 2,
        "class_names": ("even", "odd"),
        "train": train,
        "local_test": local_test,
    }
    return ArrayFederation(**{**parts, **changed})  # type: ignore[arg-type]


def values(samples: object, size: int = 4) -> list[float]:
    return [value for batch in samples.batches(size) for value in batch.x[:, 0].tolist()]  # type: ignore[attr-defined]


def test_it_is_a_federation_whose_parts_are_disjoint_and_complete() -> None:
    federation: Federation = build()
    assert (federation.clients, federation.global_test_size, federation.input_spec(0)) == (3, TESTS, InputSpec((1,), 2))
    seen: list[float] = []
    for client in range(3):
        data = federation.client(client, "cpu")
        assert (len(data.train), len(data.test)) == (federation.samples(client), federation.test_samples(client))
        assert (data.samples, len(data.test), data.name) == (8, 2, f"client {client}")
        seen += values(data.train) + values(data.test)
    assert sorted(seen) == list(range(COUNT))
    assert federation.total_samples(2) == 16
    assert values(federation.global_test(2, 5, "cpu")) == [102, 103, 104]


@pytest.mark.parametrize("whole", [0, array_samples.WHOLE_SET_BYTES])
@pytest.mark.parametrize(
    ("stored", "given"),
    [("float64", torch.float32), ("float16", torch.float32), ("uint8", torch.int64), ("bool", torch.int64)],
)
def test_fractions_come_as_float32_and_all_else_as_int64(
    stored: str, given: torch.dtype, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_samples, "WHOLE_SET_BYTES", whole)
    data = build(stored).client(1, "cpu")
    for generator in (None, torch.Generator().manual_seed(0)):
        batch = next(iter(data.train.batches(4, generator)))
        assert (batch.x.dtype, batch.y.dtype) == (given, torch.int64)


def test_read_only_arrays_are_enough_and_a_pickle_holds_them_once() -> None:
    federation = build("float64", inputs=np.zeros((COUNT, 5000)))
    federation.inputs.setflags(write=False)
    federation.test_inputs.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(values(federation.client(0, "cpu").train)) == 8
        assert len(values(federation.global_test(0, TESTS, "cpu"))) == TESTS
    assert len(pickle.dumps(federation)) < federation.inputs.nbytes + 10_000


def test_a_common_test_set_is_one_object_in_a_process_and_in_no_pickle() -> None:
    federation = build("float64", local_test=Common(np.arange(TESTS), 3), local_test_is_global=True)
    first, second = (federation.client(client, "cpu").test for client in range(2))
    assert first is second and values(first) == values(federation.global_test(0, TESTS, "cpu"))
    assert federation.client(0, "cpu", channels_last=False).test is not first
    sent = pickle.loads(pickle.dumps(federation))
    assert not sent._common_tests and values(sent.client(0, "cpu").test) == values(first)
    cut_off = build("float64")
    assert cut_off.client(0, "cpu").test is not cut_off.client(0, "cpu").test


@pytest.mark.parametrize("whole", [0, array_samples.WHOLE_SET_BYTES])
@pytest.mark.parametrize("stored", ["float32", "int64"])
@pytest.mark.parametrize("size", [3, 100])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_model_may_write_to_its_batches(
    stored: str, whole: int, size: int, shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_samples, "WHOLE_SET_BYTES", whole)
    federation = build(stored)
    data = federation.client(0, "cpu")
    for samples in (data.train, data.test, federation.global_test(0, TESTS, "cpu")):
        expected = [(batch.x.clone(), batch.y.clone()) for batch in samples.batches(100)]
        for batch in samples.batches(size, torch.Generator().manual_seed(0) if shuffled else None):
            batch.x.mul_(2)
            batch.y.sub_(1)
        (x, y), *more = expected
        (batch,) = samples.batches(100)
        assert not more and torch.equal(x, batch.x) and torch.equal(y, batch.y)
