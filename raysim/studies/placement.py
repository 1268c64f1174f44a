"""Options beside a study file that say where its cells are computed, on a GPU say; no result depends on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from raysim.config.command_line import given_options
from raysim.errors import ConfigError

NAMES = (
    *("engine.gpus_per_client", "engine.gpu_memory_cap", "engine.cpus_per_client"),
    *("engine.actors", "engine.backend", "engine.address"),
)


def placement(words: Sequence[str], owner: str) -> Mapping[str, object]:
    """Options of a command line, path → plain value, each of which is one of ``NAMES``.

    Args:
        owner: what has all other settings.

    Raises:
        ConfigError: an option is none of these, or its value is not allowed.
    """
    found: dict[str, object] = {}
    for one in _options(words):
        typed = one[0].partition("=")[0].lstrip("-").replace("-", "_")
        if not one[0].startswith("--") or f"engine.{typed.removeprefix('engine.')}" not in NAMES:
            raise ConfigError(
                f"{one[0]}: a study file has all settings in it; change {owner}, or leave it out. Beside it may stand "
                f"where cells are computed: {', '.join(f'--{name}' for name in NAMES)}."
            )
        found |= given_options(one, [{}])
    return found


def _options(words: Sequence[str]) -> Iterator[list[str]]:
    """Each option with its value."""
    begins = [place for place, word in enumerate(words) if word.startswith("--") or not place]
    for first, last in itertools.pairwise([*begins, len(words)]):
        yield list(words[first:last])
