"""FedRAD's data sizes: clients filled up with augmented copies, kept as recipes and made when a client is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.splits.partition import Partition

CHUNK = 2048  # copies made at a time, which bounds the memory for their padded originals


@dataclass(frozen=True, eq=False)
class Fill:
    """Recipes of the augmented copies that fill clients up.

    ``sources`` are the images that each client's copies are made of, in the order in which they were drawn. Copy j, of
    image ``sources.indices[j]``, is padded by ``padding`` zeros on each side, cropped to its old size from row
    ``tops[j]``, column ``lefts[j]``, and mirrored where ``flips[j]``.
    """

    sources: Partition
    tops: NDArray[np.int16]
    lefts: NDArray[np.int16]
    flips: NDArray[np.bool_]
    padding: int

    def copies(self, images: NDArray[np.uint8], client: int) -> NDArray[np.uint8]:
        """The client's copies [copies, H, W, C], uint8, of ``images`` [N, H, W, C]."""
        import torch

        from raysim.workloads.images.augment import crop_and_flip_with

        result = np.empty((self.sources.size(client), *images.shape[1:]), dtype=np.uint8)
        first, last = self.sources.offsets[client : client + 2].tolist()
        for start in range(first, last, CHUNK):
            part = slice(start, min(start + CHUNK, last))
            originals = torch.from_numpy(images[self.sources.indices[part]]).permute(0, 3, 1, 2)
            tops, lefts, flips = (torch.tensor(drawn[part]) for drawn in (self.tops, self.lefts, self.flips))
            copies = crop_and_flip_with(originals, tops, lefts, flips, self.padding)
            result[part.start - first : part.stop - first] = copies.permute(0, 2, 3, 1).numpy()
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
        sources=Partition(
            train.indices[generator.integers(len(train.indices), size=total)],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        ),
        tops=generator.integers(2 * padding + 1, size=total, dtype=np.int16),
        lefts=generator.integers(2 * padding + 1, size=total, dtype=np.int16),
        flips=generator.random(total) < 0.5,
        padding=padding,
    )
