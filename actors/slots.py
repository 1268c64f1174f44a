"""The slots of the Ray pool: the actor in each, its replacement when it died, and reports that none is up."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayError

from raysim.actors.client import Starter, actor_name
from raysim.actors.sending import check_object
from raysim.errors import PlacementError, RaysimError
from raysim.exchange.profile_marks import now
from raysim.units import counted

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation

ENDING = 2.0
"""Seconds that killed actors have to give back memory of a GPU, before new ones ask for it."""
FIRST = 5.0
"""Seconds without an actor before the first report."""
START = 30.0
"""The same before any has been up: importing torch takes a while, and is no fault."""
FACTOR = 10.0
"""Factor between two waits for the next report."""


def alive_nodes() -> dict[str, dict[str, float]]:
    """Total resources of each node of the cluster, by Ray's name of the node."""
    nodes = ray.nodes()
    return {node["NodeID"]: node["Resources"] for node in nodes if node["Alive"]}


def _put(federation: Federation) -> Any:
    """The data in the object store; ConfigError names what of it cannot be sent."""
    try:
        return ray.put(federation)
    except TypeError:
        check_object(f"workload {federation.name}", federation)
        raise


@dataclass(eq=False)
class Slot:
    """A slot of the pool: one actor and the jobs on their way to it.

    It gets jobs once it is up, and never before: an actor that waits for a node would hold them for as long.
    """

    place: int
    actor: Any = None
    coming: Any = None
    """Reference of its ``prepare`` until that has come back; from then on it is up."""
    here: Any = None
    """Reference of the first answer of its process, until that has come: before it, it may wait for a node."""
    jobs: list[int] = field(default_factory=list)
    begun: float = 0.0
    """When its ``prepare``, or the first of its jobs, began, as far as the driver can tell."""
    node: str = ""
    """Ray's name of the node that the actor is on."""
    deaths: int = 0
    """Number of actors in a row that died before they were up."""

    @property
    def up(self) -> bool:
        """Whether an actor is here and has finished its start."""
        return self.actor is not None and self.coming is None

    @property
    def name(self) -> str:
        """The actor's name in Ray's dashboard."""
        return actor_name(self.place)


class Slots:
    """All slots of the pool.

    Args:
        started: actors that are there already, no more than there are slots; the others are started here.
    """

    def __init__(
        self, config: RunConfig, federation: Federation, starter: Starter, places: int, started: Sequence[Any] = ()
    ) -> None:
        self._config, self._starter = config, starter
        self.federation = _put(federation)
        """Reference of the data: who reads it has the object store's arrays, read-only, and needs none of its own."""
        self._slots = [Slot(place) for place in range(places)]
        self._lives: Counter[int] = Counter()
        """How many actors each place has had: while Ray still holds a dead one's name, the next needs another."""
        self.coming: dict[Any, Slot] = {}
        """Reference of ``prepare`` → where it is on its way."""
        self.fill(started)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def fill(self, started: Sequence[Any] = ()) -> None:
        """Give every empty slot an actor, one of those that are started or a new one, and the actor the data."""
        there = iter(started)
        for slot in self._slots:
            if slot.actor is None:
                self._lives[slot.place] += 1
                slot.actor = next(there, None) or self._starter.start(slot.place, self._lives[slot.place])
                slot.here = slot.actor.__ray_ready__.remote()
                slot.coming = slot.actor.prepare.remote(self._config, self.federation)
                self.coming[slot.coming] = slot

    def settle(self, reference: Any, note: Callable[[str], None]) -> None:
        """An actor's ``prepare`` is over: it may get jobs, or it died before and another one starts, which is noted.

        Raises:
            PlacementError: it cannot start, or too many in a row died first.
        """
        slot = self.coming.pop(reference)
        slot.coming = slot.here = None
        try:
            slot.node = ray.get(reference)
            slot.deaths = 0
        except RayError as error:
            slot.deaths += 1
            self.kill(slot)
            # One whose data or model cannot be had fails in the same way again.
            died = isinstance(error, RayActorError) and not error.actor_init_failed
            if not died and not isinstance(error, OutOfMemoryError):
                cause = getattr(error, "cause", None)  # raysim's own errors say all without a traceback
                raise PlacementError(
                    f"a client actor cannot start: {cause if isinstance(cause, RaysimError) else error}"
                ) from error
            reason = str(error).strip().splitlines()[0]
            advice = (
                f"Most likely for want of memory ({reason}): lower --engine.actors, or raise --engine.cpus_per_client; "
                "if something else ends them, raise --engine.actor_attempts"
            )
            self._again(slot, "died before it was up", advice, note)

    def look(self, limit: float, note: Callable[[str], None]) -> None:
        """Replace actors whose process is there, and whose start has not come to an end within ``limit`` seconds.

        Raises:
            PlacementError: too many in a row.
        """
        for slot in list(self.coming.values()):
            if slot.here is not None and ray.wait([slot.here], timeout=0)[0]:
                slot.here, slot.begun = None, now()
            elif slot.here is None and now() - slot.begun > limit and not ray.wait([slot.coming], timeout=0)[0]:
                slot.deaths += 1
                self.kill(slot)
                why = "Look whether something stops these processes; if data or model take so long, raise"
                self._again(slot, f"did not come up within {limit:g} s", f"{why} --engine.task_deadline", note)

    def _again(self, slot: Slot, how: str, advice: str, note: Callable[[str], None]) -> None:
        """Start another actor in the place of one that was never up, unless too many in a row have gone."""
        attempts = self._config.engine.actor_attempts
        if slot.deaths >= attempts:
            raise PlacementError(f"a client actor cannot start: {attempts} in a row {how}. {advice}")
        note(f"{slot.name} {how}; another one is started")
        self.fill()

    def restart(self, config: RunConfig, starter: Starter, places: int) -> None:
        """Replace all actors by ``places`` new ones of another kind; no actor may hold a job."""
        self.close()
        time.sleep(ENDING)
        self._config, self._starter = config, starter
        self._slots = [Slot(place) for place in range(places)]
        self.fill()

    def resize(self, places: int, nodes: Mapping[str, object]) -> None:
        """Change the number of slots: add new ones, or drop those whose actor is not up or not on one of ``nodes``."""
        taken = {slot.place for slot in self._slots}
        free = (place for place in itertools.count() if place not in taken)
        while len(self._slots) < places:
            self._slots.append(Slot(next(free)))
        self._slots.sort(key=lambda slot: slot.place)
        for slot in reversed(self._slots.copy()):
            if len(self._slots) > places and not (slot.up and slot.node in nodes):
                self.kill(slot)
                self._slots.remove(slot)
        self.fill()

    def kill(self, slot: Slot) -> None:
        """Kill the actor of a slot; a frozen one is killed by its raylet after five seconds."""
        if slot.actor is not None:
            ray.kill(slot.actor)
        self.coming.pop(slot.coming, None)
        slot.actor, slot.coming, slot.here, slot.jobs = None, None, None, []

    def close(self) -> None:
        """Kill all client actors."""
        for slot in self._slots:
            self.kill(slot)


class Patience:
    """Back-off of the reports about one pool.

    Args:
        needs: what an actor takes ("1 CPU").
    """

    def __init__(self, slots: Slots, needs: str, clock: Callable[[], float] = now) -> None:
        self._slots, self._needs, self._clock = slots, needs, clock
        self._since: float | None = None
        self._next = START
        self._said = False

    def look(self, note: Callable[[str], None]) -> None:
        """Report the wait if it is time to; called about once a second while there are jobs."""
        up = sum(slot.up for slot in self._slots)
        if up:
            if self._said:
                note(f"goes on with {counted(up, 'client actor')}")
            self._since, self._next, self._said = None, FIRST, False
            return
        if self._since is None:
            self._since = self._clock()
        waited = self._clock() - self._since
        if waited >= self._next:
            nodes = alive_nodes().values()
            cores, gpus = (sum(node.get(kind, 0.0) for node in nodes) for kind in ("CPU", "GPU"))
            has = f"{counted(len(nodes), 'node')} with {cores:g} CPU and {gpus:g} GPU in all"
            note(
                f"no client actor has been up for {waited:.0f} s: the run waits for one to start, on a node with room "
                f"for {self._needs} (the cluster has {has})"
            )
            self._next, self._said = FACTOR * waited, True
