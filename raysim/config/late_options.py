"""Options that are younger than proofs: at their default no proof and no checkpoint holds them.

A proof begins with all settings that results depend on. With an option that is new every run would have another head
than the same run before, bit for bit equal as it is. So an option that is added to raysim, to a fixed section or to a
method, workload or model that it has, declares ``Help(..., late=True)``: where a run leaves it at its default, its
proof is the one that it had without the option.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from raysim.config import registry
from raysim.config.options import options_of_class
from raysim.config.run_config import options_of


def late_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Path → default of every late option of a run with these settings.

    Classes are looked up among raysim's own alone, so that names in a foreign folder import nothing.
    """
    found = dict(_of_fixed_sections())
    for kind in registry.KINDS:
        name = settings.get(f"{kind}.name")
        if isinstance(name, str):
            found |= _of_class(kind, name)
    return found


def recorded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as proofs and checkpoints hold them: without late options at their default."""
    late = late_defaults(settings)
    return {path: value for path, value in settings.items() if path not in late or value != late[path]}


def in_full(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a proof, a checkpoint or a configuration holds them, with the late options that it leaves out."""
    return {**late_defaults(settings), **settings}


@functools.cache
def _of_fixed_sections() -> Mapping[str, Any]:
    return {path: option.default for path, option in options_of({}).items() if option.help.late}


@functools.cache
def _of_class(kind: registry.Kind, name: str) -> Mapping[str, Any]:
    if name not in registry.known(kind):
        return {}
    options = options_of_class(kind, registry.resolve(kind, name))
    return {path: option.default for path, option in options.items() if option.help.late}
