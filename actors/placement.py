"""How many client actors fit on the cluster, and their start."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray

from actors.client import ClientActor, actor_name
from raysim.errors import PlacementError

if TYPE_CHECKING:
    from raysim.config import RunConfig


@dataclass(frozen=True)
class Placement:
    """How many actors there are and what each holds."""

    actors: int
    cpus: float
    gpus: float

    def describe(self, clients: int) -> str:
        held = f"{1 / self.gpus:g} to a GPU" if 0 < self.gpus < 1 else f"{self.gpus:g} GPU each" if self.gpus else ""
        each = held or f"{self.cpus:g} CPU each"
        return f"{self.actors} client actors, {each}, serve {clients} clients"

    @property
    def needs(self) -> str:
        """What one actor takes."""
        held = " and ".join(f"{held:g} {kind}" for held, kind in ((self.cpus, "CPU"), (self.gpus, "GPU")) if held)
        return held or "a process"


def alive_nodes() -> dict[str, dict[str, float]]:
    """What each node of the cluster has in all, by Ray's name of the node."""
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return {node["NodeID"]: node["Resources"] for node in nodes if node["Alive"]}


def place(config: RunConfig, nodes: Sequence[Mapping[str, float]], useful: int) -> Placement:
    """How many client actors fit.

    Args:
        config: asks for CPU cores and a share of a GPU per actor, and perhaps for a number of actors.
        nodes: what each node of the cluster has in all; an actor never spans two.
        useful: how many could be busy at once (the clients of a round).

    Raises:
        PlacementError: not even one actor fits, or fewer than were asked for.
    """
    engine = config.engine
    wanted = {"CPU": engine.cpus_per_client, "GPU": engine.gpus_per_client}
    wanted = {kind: needed for kind, needed in wanted.items() if needed > 0}
    for kind, needed in wanted.items():
        have = max(node.get(kind, 0.0) for node in nodes)
        if have < needed:
            option = f"--engine.{kind.lower()}s_per_client"
            raise PlacementError(
                f"a client actor asks for {needed:g} {kind}, but the cluster's largest node has {have:g}, so it would "
                f"wait for ever. Lower {option}" + (" (0 trains on the CPU)" if kind == "GPU" else "")
            )
    # A little above, because 1/3 of a GPU three times is just below one.
    fits = [min(math.floor(node.get(kind, 0.0) / wanted[kind] + 1e-6) for kind in wanted) for node in nodes if wanted]
    cores = max(1, int(sum(node.get("CPU", 1.0) for node in nodes)))
    most = sum(fits) if wanted else max(engine.actors, cores)  # what reserves nothing still needs a core to run on
    if engine.actors > most or most == 0:
        has = " and ".join(f"{sum(node.get(kind, 0.0) for node in nodes):g} {kind}" for kind in wanted)
        takes = " and ".join(f"{needed:g} {kind}" for kind, needed in wanted.items())
        raise PlacementError(
            f"--engine.actors {engine.actors or 1} cannot be met, only {most} fit: the cluster has {has} on "
            f"{len(nodes)} node(s), an actor takes {takes}. Lower --engine.actors (0: as many as fit), or what an "
            "actor takes"
        )
    return Placement(engine.actors or min(most, useful), engine.cpus_per_client, engine.gpus_per_client)


class Starter:
    """Starts client actors; the first call of each must be ``prepare``."""

    def __init__(self, config: RunConfig) -> None:
        self._engine = config.engine
        # Names must be unique within a namespace: this one is the run's own, so no other run can be in the way.
        self._namespace = f"raysim-{uuid.uuid4().hex[:12]}"

    def start(self, place: int, life: int = 1) -> Any:
        """A new actor for a place of the pool; ``life`` counts those that it has had."""
        # A new name for each life: for a while Ray still holds the dead actor's.
        return ClientActor.options(
            name=actor_name(place) + (f" (life {life})" if life > 1 else ""),
            namespace=self._namespace,
            num_cpus=self._engine.cpus_per_client,
            num_gpus=self._engine.gpus_per_client,
        ).remote(self._engine.threads, place)
