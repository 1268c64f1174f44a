"""Client actors that start while the driver loads the data: importing torch takes longer than most data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ray

from raysim.actors.capacity import Placement, place, useful_actors
from raysim.actors.client import Starter
from raysim.actors.pool import RayPool
from raysim.actors.slots import alive_nodes
from raysim.config.run_config import with_sections

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation


class EarlyActors:
    """Starts client actors at once, and hands them to the pool when the data is there.

    Raises:
        PlacementError: the cluster can never give the actors that were asked for.
    """

    def __init__(self, config: RunConfig) -> None:
        self._config = _without_data(config)
        placement = self._place(useful_actors(config))
        self._starter = Starter(self._config)
        self._actors = [self._starter.start(number) for number in range(placement.actors)]

    def _place(self, useful: int) -> Placement:
        return place(self._config, list(alive_nodes().values()), useful)

    def pool(self, federation: Federation, useful: int) -> RayPool:
        """The pool of the run, made of the early actors, with more or fewer where that is needed."""
        placement = self._place(useful)
        actors, self._actors = self._actors[: placement.actors], self._actors[placement.actors :]
        self.dismiss()
        return RayPool(self._config, federation, placement, useful, self._starter, actors)

    def dismiss(self) -> None:
        """End the actors that no pool has taken over, since others may wait for their cores."""
        while self._actors:
            ray.kill(self._actors.pop())


def _without_data(config: RunConfig) -> RunConfig:
    """The config for client actors: data that was given in Python reaches them as the federation, once a node."""
    if not hasattr(config.workload, "holding"):
        return config
    return with_sections(config, workload=config.workload.holding(None))
