"""Every random stream of a run, from (seed, purpose, round, client) alone.

No stream is ever continued across client tasks or rounds, so a task that is repeated after a fault, or served by
another actor, draws the same numbers.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


PURPOSES: Mapping[str, str] = {
    "data": "how data is drawn, cut over clients and held out",
    "model": "initial values",
    "participants": "the clients of every round",
    "intervals": "random numbers of local epochs",
    "training": "client tasks: shuffling, DP-SGD's batches, dropout, augmentation, and whatever no other purpose names",
    "devices": "devices, their availability and the order of events in virtual time",
    "events": "clients that leave, data that drifts",
    "privacy": "noise",
    "compression": "entries that are kept, and rounding",
    "attack": "who attacks, and with what",
    "defense": "buckets",
}
"""Purpose of streams → what it decides: the names of ``seed_of``."""
_STREAMS: Mapping[str, str] = {
    **dict.fromkeys(("load",), "data"),
    **dict.fromkeys(("model", "extension", "init_server", "init_client", "neunet"), "model"),
    **dict.fromkeys(("devices", "timeline", "timeline ties"), "devices"),
    **dict.fromkeys(("events leave", "events drift", "events labels"), "events"),
    **dict.fromkeys(("privacy noise", "privacy count", "privacy noise shuffle"), "privacy"),
    **dict.fromkeys(("compression", "compression down"), "compression"),
    **dict.fromkeys(("attack clients", "attack noise"), "attack"),
    "defense buckets": "defense",
    "participants": "participants",
    "intervals": "intervals",
}
"""Name of a stream → its purpose; all others are of client tasks."""


class Seed(int):
    """Root of a run's streams, with another root for those of some purposes.

    It equals its number whatever the others are: a cache by seeds is one by the :func:`root` of its purpose.
    """

    others: Mapping[str, int]
    """Purpose → its root."""

    def __new__(cls, value: int, others: Mapping[str, int] | None = None) -> Seed:
        """A root with those of some purposes, by their names."""
        made = super().__new__(cls, value)
        made.others = others or {}
        return made


def root(seed: int, purpose: str) -> int:
    """The root of the streams of one of the :data:`PURPOSES`."""
    return seed.others.get(purpose, int(seed)) if isinstance(seed, Seed) else seed


def data_streams(seed: int) -> Callable[[str], np.random.Generator]:
    """Streams that a workload draws from while it loads, one for each of its own purposes."""
    return partial(numpy_generator, root(seed, "data"))


def number(seed: int, purpose: str, round: int = 0, client: int = 0) -> int:
    """A 63-bit seed, independent for every (seed, purpose, round, client)."""
    if isinstance(seed, Seed):
        seed = root(seed, _STREAMS.get(purpose, "training"))
    # crc32 instead of hash(): Python salts hash() of strings anew in every process.
    words = (seed, zlib.crc32(purpose.encode()), round, client)
    # The same as of the tuple, in two thirds of the time.
    entropy = np.array(words, np.uint32) if max(words) < 2**32 else words
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]) >> 1


def reseed(number: int) -> None:
    """Seed the global generators of Python and NumPy, which a user's own code may draw from."""
    random.seed(number)
    np.random.seed(number % 2**32)


@contextmanager
def kept_streams(number: int | None = None) -> Iterator[None]:
    """Put the global generators of Python, NumPy and torch back as they were afterwards; and first seed them.

    Args:
        number: the seed of all three; None: they go on as they are. torch's is left alone where torch is not imported.
    """
    python, numpys = random.getstate(), np.random.get_state()
    torch = sys.modules.get("torch")
    with ExitStack() as stack:
        if torch is not None:
            on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
            stack.enter_context(torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_gpu else []))
        if number is not None:
            reseed(number)
            if torch is not None:
                # Not torch.manual_seed: it formats a stack trace for every device that is not there.
                torch.default_generator.manual_seed(number)
                if on_gpu:
                    torch.cuda.manual_seed(number)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpys)


def numpy_generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> np.random.Generator:
    """A NumPy generator for draws on the driver: partitions, schedules, sampling."""
    return np.random.default_rng(number(seed, purpose, round, client))


def torch_generator(seed: int, purpose: str, round: int = 0, client: int = 0) -> torch.Generator:
    """A CPU torch generator for draws inside a client task: shuffling and augmentation."""
    import torch

    return torch.Generator().manual_seed(number(seed, purpose, round, client))
