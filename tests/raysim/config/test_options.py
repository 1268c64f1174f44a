"""What a value given as text, from YAML or in Python becomes, by the annotation of its option."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import Field

from raysim.config.options import Option
from raysim.errors import ConfigError
from raysim.workloads.option_types import Help, OpenShare, Positive, PositiveInt


@pytest.mark.parametrize(
    ("hint", "raw", "wanted"),
    [
        (int, " 12 ", 12),
        (int, "1_000", 1000),
        (int, np.int64(7), 7),
        (PositiveInt, np.uint8(7), 7),
        (int, "012", 12),  # in YAML it would be ten
        (float, "1e-3", 0.001),
        (float, "3", 3.0),
        (float, 3, 3.0),
        (bool, "TRUE", True),
        (bool, "off", False),
        (str, "12", "12"),
        (str, "no", "no"),
        (str, "[1, 2]", "[1, 2]"),
        (Literal["no", "1"], "no", "no"),
        (Literal["no", "1"], "1", "1"),
        (int | None, "null", None),
        (tuple[int, ...], "3, 2", (3, 2)),
        (tuple[int, ...], "[]", ()),
        (tuple[int, ...], "", ()),
        (tuple[int, ...], [3, "2"], (3, 2)),
        (tuple[float, ...], "1e-3,2", (0.001, 2.0)),
        (tuple[str, ...], "MUTAG, 'a,b', 7", ("MUTAG", "a,b", "7")),
        (tuple[str, ...], "Patient #", ("Patient #",)),
        (tuple[str, ...], 'id: x, weight [kg], *, "a,b"', ("id: x", "weight [kg]", "*", "a,b")),
        (tuple[str, ...], "a{b}", ("a{b}",)),
        (int | tuple[int, ...], "64", 64),
        (int | tuple[int, ...], "5,6", (5, 6)),
    ],
)
def test_text_and_yaml_values_become_the_options_type(hint: Any, raw: object, wanted: object) -> None:
    value = Option("model.x", hint, 0).convert(raw)
    assert value == wanted and type(value) is type(wanted)


def test_text_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.x: 'm\\udcfcnchen' is not allowed: it is not UTF-8"):
        Option("model.x", str, "").convert("m\udcfcnchen")
    assert Option("model.x", str, "").convert("münchen") == "münchen"


@pytest.mark.parametrize(
    ("hint", "raw"),
    [
        (int, True),
        (int, "yes"),
        (int, "2.0"),
        (int, 2.0),
        (int, "0x10"),
        (float, True),
        (float, "nan"),
        (float, "1e400"),
        (float, float("inf")),
        (bool, 1),
        (bool, "1"),
        (bool, "y"),
        (str, 12),
        (str, None),
        (tuple[int, ...], "3,x"),
        (tuple[int, ...], "[3, 2"),
        (tuple[int, ...], "[" * 5000),
        (tuple[int, ...], [[1]]),
        (tuple[int, ...], "1,true"),
    ],
)
def test_what_is_of_another_type_is_refused_with_the_value_as_it_was_given(hint: Any, raw: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Option("model.x", hint, 0).convert(raw)
    assert str(caught.value).startswith(f"model.x: {raw!r} is not allowed. Allowed: ")


@pytest.mark.parametrize(
    ("hint", "raw", "shown", "allowed"),
    [
        (PositiveInt, "0", "0", "a whole number ≥ 1"),
        (OpenShare, "1", "1", "a finite number > 0, < 1"),
        (Annotated[Positive, Help("rate")], -1.5, "-1.5", "a finite number > 0"),
        (tuple[PositiveInt, ...], "3,0", "[3, 0]", "list of whole numbers ≥ 1"),
        (tuple[int, float], "3", "'3'", "list of a whole number, a finite number"),
        (PositiveInt | None, "0", "0", "a whole number ≥ 1 or null"),
        (Annotated[int, Field(ge=2, le=4)], "5", "5", "a whole number ≥ 2, ≤ 4"),
        (Annotated[str, Field(max_length=2)], "abc", "'abc'", "text"),
        (bytes, 3, "3", "text"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(hint: Any, raw: object, shown: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Option("model.x", hint, 7).convert(raw)
    assert str(caught.value) == f"model.x: {shown} is not allowed. Allowed: {allowed}; default 7."


def test_a_type_of_a_users_own_takes_its_instances() -> None:
    class Mine:
        pass

    option, value = Option("method.mine", Annotated[Mine, Help("own")], None), Mine()
    assert option.convert(value) is value
    with pytest.raises(ConfigError, match=r"method\.mine: 'text' is not allowed. Allowed: Mine; default null\."):
        option.convert("text")


def test_help_is_the_annotations_or_pydantics_description() -> None:
    assert Option("x", Annotated[int, Help("rounds", "a paper", placement=True)], 0).help.placement
    assert Option("x", Annotated[int, Field(description="rounds")], 0).help == Help("rounds")
    assert Option("x", int, 0).help == Help("")
