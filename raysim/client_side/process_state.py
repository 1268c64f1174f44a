"""State of the whole process, such as torch's default dtype: found and put back where a user's own code changes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

Snapshot = tuple[Any, ...]


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "one that is gone"


_ASPECTS: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "the working directory": (_folder, os.chdir),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's grad mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "torch's deterministic mode": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    "torch's float32 precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "the handler of Ctrl-C": (
        lambda: signal.getsignal(signal.SIGINT),
        lambda handler: signal.signal(signal.SIGINT, handler),
    ),
    "the handler of SIGTERM": (
        lambda: signal.getsignal(signal.SIGTERM),
        lambda handler: signal.signal(signal.SIGTERM, handler),
    ),
}
"""State of a process by name: how to read it, and how to put it back."""


def snapshot() -> Snapshot:
    """The values of all that is looked at; a few microseconds."""
    return tuple(read() for read, _ in _ASPECTS.values())


def put_back(before: Snapshot) -> str:
    """Put back what has changed since; a sentence that names it, empty where nothing has."""
    after, changed = snapshot(), []
    if after == before:
        return ""
    for (name, (_, write)), old, new in zip(_ASPECTS.items(), before, after, strict=True):
        if old != new:
            shown = f" ({old} → {new})" if not callable(old) and not callable(new) else ""
            changed.append(name + shown)
            with suppress(OSError, ValueError, TypeError):  # a folder that is gone, a handler of C code
                write(old)
    return (
        f"the code changed {' and '.join(changed)}, which holds for all clients of the process and for the run itself. "
        "Leave it as it is, or put it back where it is changed (try … finally)"
    )
