"""Options that a user types one by one: each is read by a run, also where it has its default value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from raysim.config import preconditions
from raysim.config.run_config import RunConfig, classes_of, options_of


def check_typed(
    typed: Iterable[str], configs: Collection[RunConfig], layers: Sequence[Mapping[str, object]] = ()
) -> None:
    """Refuse an option that was typed, also with its default value, where none of these runs reads it.

    Args:
        typed: full names of options.
        configs: settings of the runs.
        layers: the sources of a run's settings, the later ones win; what changes the value below it may be what
            switches a feature off, and is allowed.

    Raises:
        ConfigError: the first such option has no effect, and what to set for it.
    """
    for path in typed:
        values = [layer[path] for layer in layers if path in layer]
        if values[-1:] != values[-2:-1] and len(values) > 1:
            continue
        refusals = (preconditions.refusal(config, options_of(classes_of(config)), (path,)) for config in configs)
        first = next(refusals, None)
        if first is not None and all(refusals):
            raise first
