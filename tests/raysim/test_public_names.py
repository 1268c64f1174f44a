"""The public names of the package: all of them exist, and none of them costs the time of an import that is not used."""

from __future__ import annotations

import ast
import inspect

import pytest

import raysim


@pytest.mark.parametrize("name", raysim.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(raysim, name).__doc__ or name == "__version__"


def test_what_type_checkers_are_told_is_what_is_loaded() -> None:
    """The imports for type checkers and the table of modules name the same things."""
    body = ast.parse(inspect.getsource(raysim)).body
    block = next(node for node in body if isinstance(node, ast.If))
    told = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert told == raysim._MODULES


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = raysim.nothing
