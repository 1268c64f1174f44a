"""Adds up the chunks' sums of a round: in the driver, or where they are too much for it, on the workers.

If the driver adds them, b sums of d values, 4 b d bytes, pass through it: 36 GB a round for 4,000 sums of MobileNetV2.
Above ``DRIVER_BYTES`` they therefore stay where they were made, one a chunk, and groups of ``FAN_IN`` neighbors are
added by remote tasks, level by level, until few are left. Both ways follow the tree of
:class:`raysim.aggregators.means.PairwiseSum`, so that they give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raysim.aggregators.means import PairwiseSum
from raysim.exchange.pool_protocol import Done, Job

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.method import Vector

DRIVER_BYTES = 2**30
"""Upper bound of the values that the driver adds by itself in a round: about a second's work."""
FAN_IN = 16
"""A power of two, as the tree asks for."""

Run = Callable[[Sequence[Job]], Generator[Done, None, None]]


@dataclass(frozen=True)
class AddUp:
    """The sum of neighboring sums; None where there is nothing to add."""

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[None, list[Any]]:
        return None, [sum_of(inputs)]


def stays_on_workers(sums: int, size: int) -> bool:
    """Whether this number of sums of ``size`` float32 values is more than the driver takes."""
    return sums > FAN_IN and 4 * sums * size > DRIVER_BYTES


def add_on_workers(sums: Sequence[Any], run: Run, label: str) -> list[Any]:
    """Handles of at most ``FAN_IN`` sums that add up to the same as the given ones, in their order.

    Args:
        sums: handles of sums [d] (or of None).
    """
    while len(sums) > FAN_IN:
        groups = [tuple(sums[start : start + FAN_IN]) for start in range(0, len(sums), FAN_IN)]
        jobs = [Job(AddUp(), group, outputs=1, label=f"{label}, adding up updates") for group in groups]
        added: list[Any] = [None] * len(jobs)
        for done in run(jobs):
            (added[done.index],) = done.outputs
        sums = added
    return list(sums)


def sum_of(sums: Sequence[Vector | None]) -> Vector | None:
    """Their sum [d] along the tree; None if there is none."""
    total = PairwiseSum()
    for vector in sums:
        total.add(vector)
    return total.total()
