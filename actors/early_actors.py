"""Client actors that start while the driver loads the data: importing torch takes longer than most data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ray

from raysim.actors.capacity import Placement, place
from raysim.actors.client import Starter
from raysim.actors.pool import RayPool
from raysim.actors.slots import alive_nodes
from raysim.config.run_config import with_sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raysim.config.run_config import RunConfig
    from raysim.config.sections import Engine
    from raysim.workloads.federated_data import Federation


class EarlyActors:
    """Starts client actors at once, and hands them to the pool when the data is there.

    Args:
        useful: how many could be busy at once, as far as that is known.
        libraries: what each imports beside torch.

    Raises:
        PlacementError: the cluster can never give the actors that were asked for.
    """

    def __init__(self, engine: Engine, useful: int, libraries: Sequence[str] = ()) -> None:
        self._engine = engine
        placement = self._place(useful)
        self._starter = Starter(engine, libraries)
        self._actors = [self._starter.start(number) for number in range(placement.actors)]

    def _place(self, useful: int) -> Placement:
        return place(self._engine, list(alive_nodes().values()), useful)

    def pool(self, config: RunConfig, federation: Federation, useful: int) -> RayPool:
        """The pool of the run, made of the early actors, with more or fewer where that is needed."""
        placement = self._place(useful)
        actors, self._actors = self._actors[: placement.actors], self._actors[placement.actors :]
        self.dismiss()
        return RayPool(_without_data(config), federation, placement, useful, self._starter, actors)

    def dismiss(self) -> None:
        """End the actors that no pool has taken over, since others may wait for their cores."""
        while self._actors:
            ray.kill(self._actors.pop())


def _without_data(config: RunConfig) -> RunConfig:
    """The config for client actors: data that was given in Python reaches them as the federation, once a node."""
    if not hasattr(config.workload, "holding"):
        return config
    return with_sections(config, workload=config.workload.holding(None))
