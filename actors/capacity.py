"""How many client actors fit on some nodes. Nothing here needs Ray: what can never be met is said before it starts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raysim.config.run_config import RunConfig, with_sections
from raysim.config.sections import Engine
from raysim.errors import PlacementError
from raysim.schedule import at_once
from raysim.units import counted

UNKNOWN = 8
"""Largest number of actors that are started before the number of clients is known."""


@dataclass(frozen=True)
class Placement:
    """Placement of a run: the number of client actors and the resources that each holds."""

    actors: int
    cpus: float
    gpus: float

    def describe(self, clients: int) -> str:
        """The placement in one sentence for people."""
        held = f"{1 / self.gpus:g} to a GPU" if 0 < self.gpus < 1 else f"{self.gpus:g} GPU each" if self.gpus else ""
        each = held or f"{self.cpus:g} CPU each"
        serve = "serves" if self.actors == 1 else "serve"
        return f"{counted(self.actors, 'client actor')}, {each}, {serve} {counted(clients, 'client')}"

    @property
    def needs(self) -> str:
        """Resources of one actor, as Ray names them."""
        held = " and ".join(f"{held:g} {kind}" for held, kind in ((self.cpus, "CPU"), (self.gpus, "GPU")) if held)
        return held or "a process"


def useful_actors(config: RunConfig) -> int:
    """How many client actors could be busy at once, as far as the config tells before the data is loaded."""
    if config.method.traits.pooled:
        return 1
    clients = getattr(config.workload, "clients", None)
    if not isinstance(clients, int) or getattr(config.workload, "partition", "") == "sites":
        return UNKNOWN
    return at_once(config, clients)


def room(nodes: Iterable[Mapping[str, float]], wanted: Mapping[str, float]) -> int:
    """How many times what is wanted (kind → amount above 0) fits on the nodes; it never spans two."""
    # A little above, because 1/3 of a GPU three times is just below one.
    return sum(min(math.floor(node.get(kind, 0.0) / wanted[kind] + 1e-6) for kind in wanted) for node in nodes)


def place(engine: Engine, nodes: Sequence[Mapping[str, float]], useful: int) -> Placement:
    """Compute how many client actors fit on the nodes.

    Args:
        engine: asks for CPU cores and a share of a GPU per actor, and perhaps for a number of actors.
        nodes: what each node of the cluster has in all; an actor never spans two.
        useful: how many could be busy at once (the clients of a round).

    Raises:
        PlacementError: not even one actor fits, or fewer than were asked for.
    """
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
    cores = max(1, int(sum(node.get("CPU", 1.0) for node in nodes)))
    # An actor that reserves nothing still needs a core to run on.
    most = room(nodes, wanted) if wanted else max(engine.actors, cores)
    if engine.actors > most or most == 0:
        has = " and ".join(f"{sum(node.get(kind, 0.0) for node in nodes):g} {kind}" for kind in wanted)
        takes = " and ".join(f"{needed:g} {kind}" for kind, needed in wanted.items())
        raise PlacementError(
            f"--engine.actors {engine.actors or 1} cannot be met, only {most} fit: the cluster has {has} on "
            f"{counted(len(nodes), 'node')}, an actor takes {takes}. Lower --engine.actors (0: as many as fit), or "
            "what an actor takes"
        )
    return Placement(engine.actors or min(most, useful), engine.cpus_per_client, engine.gpus_per_client)


def less_crowded(config: RunConfig, actors: int) -> RunConfig | None:
    """The config with half as many actors to a GPU, after a client task ran out of memory; None if each has its own.

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


def check_this_machine(config: RunConfig) -> None:
    """Check that a Ray that is yet to start on this machine can give the actors that were asked for.

    By the most that Ray could find here. What it then offers may be less (a container's share of the cores, say) and is
    looked at once it is up.

    Raises:
        PlacementError: it can never.
    """
    running = "ray" in sys.modules and sys.modules["ray"].is_initialized()
    if config.engine.address != "local" or running or "RAY_OVERRIDE_RESOURCES" in os.environ:
        return
    gpus = _gpus() if config.engine.gpus_per_client else 0.0
    place(config.engine, [{"CPU": float(os.cpu_count() or 1), "GPU": gpus}], useful_actors(config))


def _gpus() -> float:
    """Number of GPUs that Ray would find; infinity where that cannot be asked."""
    try:
        from ray._private.accelerators import get_accelerator_manager_for_resource

        manager: Any = get_accelerator_manager_for_resource("GPU")
        found = manager.get_current_node_num_accelerators()
        visible = manager.get_current_process_visible_accelerator_ids()
    except Exception:  # it is no public part of Ray
        return math.inf
    return float(found if visible is None else min(found, len(visible)))
