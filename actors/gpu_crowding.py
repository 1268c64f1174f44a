"""Halves the number of actors per GPU after a client task ran out of GPU memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from raysim.config.run_config import with_sections

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


def less_crowded(config: RunConfig, actors: int) -> RunConfig | None:
    """The config with half as many actors to a GPU; None if each has a GPU for itself.

    An actor then takes twice the share, so that Ray keeps every GPU to the new number, also where actors are replaced
    later, and each gets twice the memory. Where there are no GPUs (they are made up, in tests), half of all actors go.
    """
    engine = config.engine
    if engine.gpus_per_client >= 1 or (not engine.gpus_per_client and actors == 1):
        return None
    if not engine.gpus_per_client:
        return with_sections(config, engine=replace(engine, actors=actors // 2))
    before = round(1 / engine.gpus_per_client)
    after = before // 2
    wanted = max(1, engine.actors * after // before) if engine.actors else 0
    return with_sections(config, engine=replace(engine, gpus_per_client=1 / after, actors=wanted))
