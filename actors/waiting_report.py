"""Reports, with exponential back-off, that a run waits for client actors and which resources they need."""

from __future__ import annotations

from collections.abc import Callable

from actors.placement import alive_nodes
from actors.slots import Slots
from raysim.engine.timing import now
from raysim.units import counted

FIRST = 5.0
"""Seconds without an actor before the first report."""
START = 30.0
"""The same before any has been up: importing torch takes a while, and is no fault."""
FACTOR = 10.0
"""Factor between two waits for the next report."""


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
