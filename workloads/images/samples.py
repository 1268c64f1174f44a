"""Images of one client as tensors on its device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.images.augment import augmented
from raysim.workloads.images.augmentation import NO_AUGMENTATION, Augmentation


class ImageSamples(ArraySamples):
    """uint8 images [N, H, W, C] and labels [N], handed out as normalized float32.

    Batches are [B, C, H, W] in torch.channels_last: a 5x5 convolution net trains faster so on a CPU even with one
    channel (measured on one core, forward and backward, batch 50: 1x8x8 1.6 against 2.3 ms, 1x28x28 22 against 27 ms,
    3x32x32 30 against 40 ms; MobileNetV2, batch 32: 63 against 91 ms). Without ``channels_last`` they are contiguous:
    a model without convolutions flattens them, which would copy each.
    """

    def __init__(  # noqa: PLR0913 - arrays, and how they become batches
        self,
        images: NDArray[np.uint8],
        labels: NDArray[np.int64],
        mean: NDArray[np.float32],
        deviation: NDArray[np.float32],
        device: str,
        augment: Augmentation = NO_AUGMENTATION,
        rows: NDArray[np.int64] | None = None,
        channels_last: bool = True,
    ) -> None:
        super().__init__(images, labels, device, rows)
        self._channels_last = channels_last
        self._mean = torch.tensor(mean, device=device)
        self._deviation = torch.tensor(deviation, device=device)
        self._augment = augment
        self.varies = bool(augment)

    def _varied(self, raw: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        # Before normalization, so that the padding is black, and on bytes, a quarter of the memory.
        return augmented(raw.permute(0, 3, 1, 2), generator, self._augment).permute(0, 2, 3, 1)

    def _shown(self, converted: torch.Tensor) -> torch.Tensor:
        """[B, C, H, W], of what :meth:`_converted` gives."""
        return converted.permute(0, 3, 1, 2) if self._channels_last else converted

    def _converted(self, raw: torch.Tensor) -> torch.Tensor:
        """[B, H, W, C] from bytes like it, or [B, C, H, W] if batches are not channels_last, contiguous."""
        floats = raw.to(torch.float32, memory_format=torch.contiguous_format)
        floats.div_(255).sub_(self._mean).div_(self._deviation)
        return floats if self._channels_last else floats.permute(0, 3, 1, 2).contiguous()
