"""Imports of libraries that ask torch's compiler something, without loading the compiler.

``torchvision.ops.roi_align`` and PyTorch Geometric import torch._dynamo for questions that nothing here asks. That
loads sympy, triton and 880 other modules: 80 MiB in every process, and most of the time of the import.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module whose functions are those of the real one, which is imported when the first of them is called."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):  # what Python itself asks of modules
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.make_room()
            return getattr(importlib.import_module(self.__name__), name)(*arguments, **options)

        return call

    def make_room(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


@contextmanager
def left_out(module: str) -> Iterator[None]:
    """While it lasts an import of this module of the compiler gives one whose functions load the real one when called.

    Afterwards the name is free, so that a later import, or an access as ``torch._dynamo``, loads the real one. It has
    no effect where the real one is loaded already.
    """
    if module in sys.modules:
        yield
        return
    stand_in = sys.modules[module] = _Later(module)
    try:
        yield
    finally:
        stand_in.make_room()
