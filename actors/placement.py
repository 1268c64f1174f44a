"""The nodes of the cluster, and the start of client actors on them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

import ray

from actors.client import ClientActor, actor_name

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


def alive_nodes() -> dict[str, dict[str, float]]:
    """Total resources of each node of the cluster, by Ray's name of the node."""
    nodes = ray.nodes()
    return {node["NodeID"]: node["Resources"] for node in nodes if node["Alive"]}


class Starter:
    """Starts client actors; the first call of each must be ``prepare``."""

    actor: ClassVar[Any] = ClientActor
    """The class of the processes."""

    def __init__(self, config: RunConfig) -> None:
        self._engine = config.engine
        # Names must be unique within a namespace: this one is the run's own, so no other run can be in the way.
        self._namespace = f"raysim-{uuid.uuid4().hex[:12]}"

    def start(self, place: int, life: int = 1) -> Any:
        """Start an actor for a slot of the pool; ``life`` counts the actors that the slot has had."""
        # A new name for each life: for a while Ray still holds the dead actor's.
        return self.actor.options(
            name=actor_name(place) + (f" (life {life})" if life > 1 else ""),
            namespace=self._namespace,
            num_cpus=self._engine.cpus_per_client,
            num_gpus=self._engine.gpus_per_client,
        ).remote(self._engine.threads, place)
