"""Every random stream of a run, from (seed, purpose, round, client) alone.

No stream is ever continued across client tasks or rounds, so a task that is repeated after a fault, or served by
another actor, draws the same numbers.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def number(seed: int, purpose: str, round: int = 0, client: int = 0) -> int:
    """A 63-bit seed, independent for every (seed, purpose, round, client)."""
    # crc32 instead of hash(): Python salts hash() of strings anew in every process.
    words = (seed, zlib.crc32(purpose.encode()), round, client)
    # The same as of the tuple, in two thirds of the time.
    entropy = np.array(words, np.uint32) if max(words) < 2**32 else words
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]) >> 1


def numpy_generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> np.random.Generator:
    """A NumPy generator for draws on the driver: partitions, schedules, sampling."""
    return np.random.default_rng(number(seed, purpose, round, client))


def torch_generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> torch.Generator:
    """A CPU torch generator for draws inside a client task: shuffling and augmentation."""
    import torch

    return torch.Generator().manual_seed(number(seed, purpose, round, client))
