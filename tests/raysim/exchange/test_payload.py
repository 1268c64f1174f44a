"""What travels once on the way into a job."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np

from raysim.engine.inline_backend import InlinePool
from raysim.exchange.payload import Packer
from raysim.method import Message


def test_what_several_messages_hold_is_stored_once_and_found_by_each() -> None:
    packer = Packer(InlinePool(SimpleNamespace(device="cpu", federation=None)))  # type: ignore[arg-type]
    model, own, extra = (np.full(3, value, np.float32) for value in (1, 2, 3))
    messages = [Message(model), Message(model, {"more": extra}), Message(own, {"more": extra}), Message(model)]
    packed = packer.pack([4, 5, 6, 7], messages, {5: "kept"})
    assert packed.states == (None, 3, None, None)
    assert [id(value) for value in packed.inputs[:3]] == [id(model), id(extra), id(own)]
    for message, found in zip(messages, packed.messages, strict=True):
        unpacked = found.unpack(packed.inputs)
        assert unpacked.parameters is message.parameters and unpacked.extra == message.extra


def test_a_new_tuple_of_the_same_models_is_no_new_object() -> None:
    """IFCA's other models were stored once for every client."""
    packer = Packer(InlinePool(SimpleNamespace(device="cpu", federation=None)))  # type: ignore[arg-type]
    models = [np.full(3, value, np.float32) for value in range(3)]
    messages = [Message(models[0], {"others": tuple(models[1:])}) for _ in range(50)]
    packed = packer.pack(range(50), messages, {})
    assert len(packed.inputs) == 2
    assert [id(each) for each in packed.inputs[1]] == [id(each) for each in models[1:]]
    other = packer.pack([0], [Message(models[0], {"others": (models[1], models[1])})], {})
    assert [id(each) for each in other.inputs[1]] == [id(models[1])] * 2


def test_equal_messages_of_neighbors_are_one_object() -> None:
    packer = Packer(InlinePool(SimpleNamespace(device="cpu", federation=None)))  # type: ignore[arg-type]
    model = np.ones(3, np.float32)
    packed = packer.pack(range(1000), [Message(model) for _ in range(1000)], {})
    assert len(packed.inputs) == 1 and len(packed.messages) == 1000
    assert len(pickle.dumps(packed.messages)) < 5000
