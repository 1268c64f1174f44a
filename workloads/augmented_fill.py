"""FedRAD's data sizes: clients filled up with augmented copies, kept as recipes and made when a client is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.partition import Integers, Partition

CHUNK = 2048  # copies made at a time, which bounds the memory for their padded originals


@dataclass(frozen=True, eq=False)
class Fill:
    """Recipes of the augmented copies that fill clients up.

    Client i's are ``offsets[i]:offsets[i + 1]``. Copy j is image ``sources[j]``, padded by ``padding`` zeros on each
    side, cropped to its old size from row ``tops[j]``, column ``lefts[j]``, and mirrored where ``flips[j]``.
    """

    sources: Integers
    offsets: Integers
    tops: NDArray[np.int16]
    lefts: NDArray[np.int16]
    flips: NDArray[np.bool_]
    padding: int

    def size(self, client: int) -> int:
        """Number of copies that a client has."""
        return int(self.offsets[client + 1] - self.offsets[client])

    def total(self, clients: int) -> int:
        """Number of copies that the first ``clients`` clients have."""
        return int(self.offsets[clients])

    def sources_of(self, client: int) -> Integers:
        """The images that a client's copies are made of."""
        return self.sources[self.offsets[client] : self.offsets[client + 1]]

    def pooled(self) -> Fill:
        """All copies as those of one client."""
        return Fill(self.sources, self.offsets[[0, -1]], self.tops, self.lefts, self.flips, self.padding)

    def copies(self, images: NDArray[np.uint8], client: int) -> NDArray[np.uint8]:
        """The client's copies [copies, H, W, C], uint8, of ``images`` [N, H, W, C]."""
        _, height, width, channels = images.shape
        result = np.empty((self.size(client), height, width, channels), dtype=np.uint8)
        first, last = int(self.offsets[client]), int(self.offsets[client + 1])
        pad = (self.padding, self.padding)
        for start in range(first, last, CHUNK):
            part = slice(start, min(start + CHUNK, last))
            padded = np.pad(images[self.sources[part]], ((0, 0), pad, pad, (0, 0)))
            rows = self.tops[part, None].astype(np.int64) + np.arange(height)
            ahead = np.arange(width)
            columns = np.where(self.flips[part, None], ahead[::-1], ahead) + self.lefts[part, None]
            number = np.arange(len(rows))[:, None, None]
            result[part.start - first : part.stop - first] = padded[number, rows[:, :, None], columns[:, None, :]]
        return result


def draw_fill(train: Partition, samples_per_client: int, padding: int, generator: np.random.Generator) -> Fill:
    """Copies that bring every client's training part to ``samples_per_client`` samples (FedRAD, section 4.2.2).

    Originals are drawn, with replacement, from the *entire* training set as the paper says ("augment data of original
    entire dataset"), so from all clients' training parts; never from anybody's local test samples, which the paper
    leaves open. Each copy's crop and flip are drawn once and stay the same in every epoch.

    Raises WorkloadError if a client has more samples than that already: real samples are not thrown away.
    """
    sizes = train.sizes
    largest = int(sizes.max())
    if largest > samples_per_client:
        raise WorkloadError(
            f"samples_per_client = {samples_per_client}, but client {int(sizes.argmax())} has {largest} training "
            f"samples already; set it to at least {largest} (0 fills nobody up), or take more clients or the iid split"
        )
    counts = samples_per_client - sizes
    total = int(counts.sum())
    return Fill(
        sources=train.indices[generator.integers(len(train.indices), size=total)],
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        tops=generator.integers(2 * padding + 1, size=total, dtype=np.int16),
        lefts=generator.integers(2 * padding + 1, size=total, dtype=np.int16),
        flips=generator.random(total) < 0.5,
        padding=padding,
    )
