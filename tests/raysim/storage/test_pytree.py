from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.storage import pytree, tree_template
from tests.state_equality import equal


@dataclasses.dataclass(frozen=True)
class Net:
    weight_1: Any
    bias: Any = None


@dataclasses.dataclass(frozen=True)
class Server:
    neunet: Net
    clusters: list[dict[str, Any]]
    total: float = 0.0
    derived: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived", len(self.clusters))


dtypes = st.sampled_from(["float32", "float64", "int64", "int8", "uint8", "bool", "float16", "complex64"])
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype, shape = np.dtype(draw(dtypes)), draw(shapes)
    size = int(np.prod(shape)) * dtype.itemsize
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype.kind == "b":
        data = bytes(octet & 1 for octet in data)
    return np.frombuffer(data, dtype).reshape(shape)  # any bits: NaN with payloads, -0.0, denormals


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.floats(width=32).map(np.float32),
    st.integers(-5, 5).map(np.int64),
)
keys = st.one_of(st.text(), st.integers())
trees = st.recursive(
    st.one_of(scalars, arrays(), st.just(np.arange(6.0).reshape(2, 3).T)),  # the last is not contiguous
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.builds(Net, inner, inner),
    ),
    max_leaves=8,
)
example = Server(
    Net(np.arange(6, dtype=np.float32).reshape(2, 3)), [{"members": (1, 2)}, {"a.b": np.ones(2), "1": True}]
)


def test_leaves_are_named_like_the_code_that_reaches_them() -> None:
    assert [name for name, _ in pytree.leaves(example)] == [
        "neunet.weight_1",
        "neunet.bias",
        "clusters[0].members[0]",
        "clusters[0].members[1]",
        "clusters[1]['a.b']",
        "clusters[1]['1']",
        "total",
    ]
    assert pytree.leaves({1: "x", "1": "y"}) == [("[1]", "x"), ("['1']", "y")]


@given(trees)
def test_nbytes_is_the_sum_over_the_leaves(state: object) -> None:
    found = [leaf for _, leaf in pytree.leaves(state) if leaf is not None]
    assert pytree.nbytes(state) == sum(leaf.nbytes if isinstance(leaf, np.ndarray) else 8 for leaf in found)


def test_nbytes_by_hand() -> None:
    assert pytree.nbytes(example) == 6 * 4 + 0 + 8 + 8 + 2 * 8 + 8 + 8
    assert pytree.nbytes(np.zeros(3, np.float16)) == 6
    assert pytree.nbytes(None) == 0
    assert pytree.nbytes(OrderedDict(a=np.zeros(3, np.float16), b=1)) == 6 + 8


def test_map_arrays_rebuilds_and_leaves_the_input_alone() -> None:
    doubled = pytree.map_arrays(example, lambda array: array * 2)
    np.testing.assert_array_equal(doubled.neunet.weight_1, [[0, 2, 4], [6, 8, 10]])
    assert isinstance(doubled, Server) and doubled.derived == 2 and doubled.clusters[0] == {"members": (1, 2)}
    np.testing.assert_array_equal(doubled.clusters[1]["a.b"], [2, 2])
    np.testing.assert_array_equal(example.clusters[1]["a.b"], [1, 1])


@given(trees)
@settings(deadline=None, max_examples=50)
def test_a_copy_is_equal(state: Any) -> None:
    assert equal(state, pytree.map_arrays(state, np.array))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], (1,)),
        ({"1": 0}, {1: 0}),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(1), -np.zeros(1)),
        (np.float32(1), np.array(1, np.float32)),
        (np.array([np.nan], np.float32), np.array([0x7FC00001], np.uint32).view(np.float32)),
        ({"a": None}, {}),
    ],
)
def test_what_is_not_bit_equal(first: Any, second: Any) -> None:
    assert not equal(first, second)


def test_nan_views_and_key_order_are_equal() -> None:
    assert equal({"a": float("nan"), "b": np.array([np.nan])}, {"b": np.array([np.nan]), "a": float("nan")})
    matrix = np.arange(6).reshape(2, 3)
    assert equal(np.ascontiguousarray(matrix.T), matrix.T)
    assert not equal(matrix, matrix + 1)


@given(trees)
@settings(deadline=None, max_examples=50)
def test_unpack_undoes_pack(state: Any) -> None:
    node, found = pytree.pack(state, "state")
    assert len(found) == sum(isinstance(leaf, (np.ndarray, np.generic)) for _, leaf in pytree.leaves(state))
    rebuilt = tree_template.unpack(node, found, state, "state")
    assert equal(rebuilt, state)
    assert type(rebuilt) is type(state)


def test_a_check_of_the_form_copies_no_array() -> None:
    state = {"server": np.zeros(3, np.float32)}
    assert tree_template.unpack(*pytree.pack(state, "state"), state, "state", copied=False)["server"] is state["server"]
    assert tree_template.unpack(*pytree.pack(state, "state"), state, "state")["server"] is not state["server"]


def test_a_dict_comes_back_in_the_order_it_was_saved() -> None:
    node, found = pytree.pack({"b": 1, "a": 2}, "state")
    assert list(tree_template.unpack(node, found, {"a": 0, "b": 0}, "state").items()) == [("b", 1), ("a", 2)]


@pytest.mark.parametrize(
    ("state", "template"),
    [
        (np.ones((5, 3)), np.zeros((0, 3))),
        ({"x": [np.ones(2), {"y": (1, None)}]}, None),
        ({"x": {"y": np.ones(1)}, 3: 1.5}, {}),
        ([1, "two", [3.0]], []),
        ((np.ones(2),), ()),
        (3, 0.0),  # an int may stand where a float is expected
    ],
)
def test_what_a_template_may_leave_open(state: Any, template: Any) -> None:
    node, found = pytree.pack(state, "state")
    assert equal(tree_template.unpack(node, found, template, "state"), state)


@pytest.mark.parametrize(
    ("state", "template", "message"),
    [
        (
            {"a": np.ones(2)},
            {"a": np.ones(2), "b": np.ones((4, 5))},
            "s.b: expected float64 array of shape (4, 5), found not",
        ),
        ({"a": 1, "b": 2}, {"a": 1}, "s.b: expected nothing, found int"),
        (
            [np.ones((2, 3))],
            [np.ones((0, 4))],
            "s[0]: expected float64 array of shape (any, 4), found float64 array of shape (2, 3)",
        ),
        (
            np.ones(2, np.float32),
            np.ones(2),
            "s: expected float64 array of shape (2), found float32 array of shape (2)",
        ),
        (np.ones(2), np.ones((2, 0)), "shape (2, any), found"),
        (Net(1), {"weight_1": 1, "bias": None}, "s: expected dict of 2, found a dataclass"),
        ([1], Net(1), "s: expected Net (dataclass), found list of 1"),
        (True, 1, "s: expected int, found bool"),
        (1, True, "s: expected bool, found int"),
        (1.5, 1, "s: expected int, found float"),
        (None, np.ones(1), "s: expected float64 array of shape (1), found NoneType"),
        ([1], {}, "s: expected dict, found list of 1"),
        ({"n": Net(1)}, None, "s.n: found a dataclass where the template has none"),
        ([1, 2], [1], "s[1]: expected nothing, found int"),
        ((1, 2), [1, 2], "s: expected list of 2, found tuple of 2"),
    ],
)
def test_a_misfit_names_leaf_expected_and_found(state: Any, template: Any, message: str) -> None:
    node, found = pytree.pack(state, "s")
    with pytest.raises(ValueError) as error:
        tree_template.unpack(node, found, template, "s")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": [object()]}, "a[0]: a value of type object can neither be sent nor saved; use numpy arrays, numbers"),
        ({"a": {1, 2}}, "a: a value of type set can neither"),
        ([np.array([None])], "[0]: a value of type object array can neither"),
        ({1.5: 0}, "a key must be str or int, found 1.5"),
        ({True: 0}, "a key must be str or int, found True"),
    ],
)
def test_foreign_leaves_are_refused_by_name(state: Any, message: str) -> None:
    for function in (pytree.leaves, pytree.nbytes):
        with pytest.raises(TypeError) as error:
            function(state)
        assert message in str(error.value)
