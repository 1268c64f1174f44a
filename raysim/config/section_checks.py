"""Conditions between options of the fixed sections (raysim/config/sections.py)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from raysim.config import total_epochs
from raysim.errors import ConfigError

if TYPE_CHECKING:
    from raysim.config.sections import Engine, Schedule, Training


MOST_SHARES = 10_000
"""Largest number of actors to a GPU: Ray counts its parts by the ten-thousandth."""


def cross_check(training: Training, schedule: Schedule, engine: Engine) -> None:
    """ConfigError for values that are each in range and contradict one another, or that no range can describe."""
    if training.optimizer_state == "kept" and schedule.sampling_rate < 1:
        raise ConfigError(
            f"training.optimizer_state: kept with schedule.sampling_rate {schedule.sampling_rate}: the moments of a "
            "client that was not sampled belong to a model of many rounds ago. Set schedule.sampling_rate to 1, or "
            "training.optimizer_state to fresh."
        )
    total_epochs.check(schedule)
    if len(schedule.joins) > 1 and schedule.join_every == 0:
        raise ConfigError(
            f"schedule.join_every: 0 with schedule.joins {list(schedule.joins)}, whose later groups would never join. "
            "Set schedule.join_every to the total local epochs between two of them, at least 1."
        )
    if schedule.join_every and len(schedule.joins) < 2:
        raise ConfigError(
            f"schedule.join_every: {schedule.join_every} has no effect with fewer than two groups in schedule.joins, "
            "3,2,3,2 say."
        )
    size = engine.block_size
    if size & (size - 1):
        below = 1 << (size.bit_length() - 1)
        raise ConfigError(
            f"engine.block_size: {size} is no power of two, and only such blocks can be added up where clients are "
            f"trained. Allowed: 0, 1, 2, 4, 8, …; nearest: {below} and {2 * below}."
        )
    gpus = engine.gpus_per_client
    if gpus != 0 and not _is_share(gpus):
        raise ConfigError(
            f"engine.gpus_per_client: {gpus} is neither 0, 1/k for a whole k up to {MOST_SHARES:,}, nor a whole "
            f"number, so that a part of a GPU could never be used. Nearest: {' and '.join(_neighbors(gpus))}."
        )
    if not re.fullmatch(r"local|auto|(ray://)?[^\s:/]+:\d{1,5}", engine.address):
        raise ConfigError(
            f"engine.address: {engine.address!r} is not allowed. Allowed: local, auto, ray://HOST:PORT or HOST:PORT."
        )


def _is_share(gpus: float) -> bool:
    if gpus >= 1:
        return float(gpus).is_integer()
    # Decimal fractions are cut: 0.333 is meant to be 1/3. 0.33 is not accepted, it would waste a hundredth of a GPU.
    return gpus >= 1 / MOST_SHARES and abs(gpus * round(1 / gpus) - 1) <= 2e-3


def _neighbors(gpus: float) -> list[str]:
    """The allowed numbers of GPUs below and above one that is not."""
    if gpus > 1:
        return [f"{math.floor(gpus)}", f"{math.ceil(gpus)}"]
    if gpus < 1 / MOST_SHARES:
        return ["0", f"1/{MOST_SHARES} = {1 / MOST_SHARES:.6g}"]
    actors = math.floor(1 / gpus)
    return [f"1/{k} = {1 / k:.6g}" if k > 1 else "1" for k in (actors + 1, actors)]
