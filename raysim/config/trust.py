"""Code that a configuration file names is imported only if the user named or trusted it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from raysim.config import registry
from raysim.errors import ConfigError


def check_names(
    settings: Mapping[str, object],
    file: Path,
    named: Mapping[str, object],
    trusted: Sequence[Path] = (),
    *,
    advice: str = "",
) -> None:
    """Refuse a file that names code (``package.module:Class``) which the user has not named or trusted.

    Importing a module runs it, so a run folder or configuration of unknown origin could otherwise run anything.

    Args:
        named: names that the user gave directly (on the command line), ``method.name`` → name.
        trusted: folders and files whose configurations may name any code (``--trust``).
        advice: how to name or trust it; empty: on the command line.

    Raises:
        ConfigError: the first name that is neither raysim's own, nor named, nor in a trusted file.
    """
    place = file.resolve()
    if any(place.is_relative_to(path.resolve()) for path in trusted):
        return
    for kind in registry.KINDS:
        name = settings.get(f"{kind}.name")
        if isinstance(name, str) and ":" in name and named.get(f"{kind}.name") != name:
            words = f"add --{kind} {name}, or --trust {file.parent} for all that files in that folder name"
            raise ConfigError(
                f"{file} names code of its own: {kind} {name!r}. Importing it would run that code, so a file alone "
                f"cannot ask for it. If you know it, {advice or words}."
            )


def naming_words(settings: Mapping[str, object]) -> str:
    """The command-line words that name a configuration's own code again: `` --method mine:Method``, or nothing."""
    given = ((kind, settings.get(f"{kind}.name")) for kind in registry.KINDS)
    return "".join(f" --{kind} {name}" for kind, name in given if isinstance(name, str) and ":" in name)
