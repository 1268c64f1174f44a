"""Where a pass over samples is cut into mini-batches: the one function that training, clocks and merged steps ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LastBatch:
    """Rule for the remainder of a training pass: the N mod B samples after the last whole mini-batch of B.

    A client with no more than B samples has one mini-batch of all of them, whatever the rule.
    """

    rule: Literal["keep", "merge", "drop"] = "keep"
    """keep: the remainder is a mini-batch of its own, unless it is a single sample, which joins the one before; merge:
    so does every remainder below the share; drop: a pass ends with its last whole mini-batch."""
    below: float = 0.25
    """Share of B below which ``merge`` lets the remainder join the mini-batch before it."""

    def joins(self, remainder: int, batch_size: int) -> bool:
        """Whether a remainder of at least one sample joins the mini-batch before it."""
        return remainder == 1 or (self.rule == "merge" and remainder < self.below * batch_size)

    def largest(self, batch_size: int) -> int:
        """The most samples that a mini-batch of this rule can have."""
        if self.rule == "drop" or batch_size == 1:
            return batch_size
        below = math.ceil(self.below * batch_size) if self.rule == "merge" else 0
        return batch_size + max(1, below - 1)


KEEP = LastBatch()


def batch_bounds(samples: int, batch_size: int, last: LastBatch | None) -> list[tuple[int, int]]:
    """(start, stop) of every mini-batch of one pass over ``samples`` samples.

    Args:
        last: the rule of a training pass; None: a pass of an evaluation, which has every sample and merges nothing.

    Raises:
        ValueError: ``batch_size`` is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    stops = [*range(batch_size, samples + 1, batch_size)]
    remainder = samples % batch_size
    if remainder and not stops:
        stops = [samples]
    elif remainder and last is not None and last.rule != "drop" and last.joins(remainder, batch_size):
        stops[-1] = samples
    elif remainder and (last is None or last.rule != "drop"):
        stops.append(samples)
    return list(zip([0, *stops[:-1]], stops, strict=True)) if stops else []


def bounds_of_pass(samples: int, batch_size: int, shuffled: bool, last: LastBatch | None) -> list[tuple[int, int]]:
    """The bounds of a pass whose rule may be left out: a shuffled pass, which trains, then keeps the remainder."""
    return batch_bounds(samples, batch_size, KEEP if last is None and shuffled else last)


def samples_of_steps(samples: int, batch_size: int, last: LastBatch, steps: int) -> int:
    """How many samples a client trains on in ``steps`` mini-batches of as many passes as they need; 0: of one pass."""
    stops = [stop for _, stop in batch_bounds(samples, batch_size, last)]
    if not stops:
        return 0
    passes, rest = divmod(steps or len(stops), len(stops))
    return passes * stops[-1] + (stops[rest - 1] if rest else 0)
