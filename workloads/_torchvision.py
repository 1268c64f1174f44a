"""torchvision without torch's compiler, for which a process would wait longer than for all the rest.

``torchvision.ops.roi_align`` asks the compiler something, which nobody here ever does: importing it loads
torch._dynamo, sympy and triton, 880 modules, 80 MiB in every process and nine tenths of the time of the import. A
module that looks its functions up when they are called stands in for the compiler's while torchvision is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_ASKED = "torch._dynamo.utils"


class _Later(ModuleType):
    """A module whose functions are those of the real one, which is imported when the first of them is called."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):  # what Python itself asks of modules
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.make_room()
            return getattr(importlib.import_module(_ASKED), name)(*arguments, **options)

        return call

    def make_room(self) -> None:
        if sys.modules.get(_ASKED) is self:
            del sys.modules[_ASKED]


@contextmanager
def _compiler_left_out() -> Iterator[None]:
    if _ASKED in sys.modules:
        yield
        return
    stand_in = sys.modules[_ASKED] = _Later(_ASKED)
    try:
        yield
    finally:
        stand_in.make_room()


with _compiler_left_out():
    from torchvision import datasets, models

__all__ = ["datasets", "models"]
