"""Options that are younger than proofs: at their default no proof and no checkpoint holds them.

A proof begins with all settings that results depend on. With an option that is new every run would have another head
than the same run before, bit for bit equal as it is. So an option of a fixed section that is added declares
``Help(..., late=True)``: where a run leaves it at its default, its proof is the one that it had without the option.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from raysim.config.run_config import options_of


@functools.cache
def late_defaults() -> Mapping[str, Any]:
    """Path → default of every late option."""
    return {path: option.default for path, option in options_of({}).items() if option.help.late}


def recorded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as proofs and checkpoints hold them: without late options at their default."""
    late = late_defaults()
    return {path: value for path, value in settings.items() if path not in late or value != late[path]}


def in_full(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a proof, a checkpoint or a configuration holds them, with the late options that it leaves out."""
    return {**late_defaults(), **settings}
