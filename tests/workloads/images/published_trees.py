"""Folders as the published medical data sets have them, of images of one gray value each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from raysim.workloads.federated_data import Samples
from raysim.workloads.images.file_federation import FileFederation

SITES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "site_10", "site_9"]


ENDINGS = [".png", ".jpg", ".npy"]


def name_of(part: str, number: int) -> str:
    return f"{part}_{number}{ENDINGS[number % 3]}"


def write_image(path: Path, value: int) -> None:
    pixels = np.full((7, 9, 3), value, dtype=np.uint8)
    if path.suffix == ".npy":
        np.save(path, pixels.astype(np.float32))
    else:
        Image.fromarray(pixels).save(path)


def write_tree(root: Path, split: str, clients: list[str]) -> None:
    """Image number i is of gray value i (training) or 100 + i (test) and of class i % 2; client k has 6 in a row."""
    for part, count, base in (("train", 6 * len(clients), 0), ("test", 10, 100)):
        (root / part).mkdir(parents=True)
        for number in range(count):
            write_image(root / part / name_of(part, number), base + number)
        with (root / "labels.csv").open("a") as file:
            file.writelines(f"{name_of(part, number)},{number % 2}.0\n" for number in range(count))
    (root / split).mkdir(parents=True)
    for client, name in enumerate(clients):
        lines = [name_of("train", number) for number in range(6 * client, 6 * client + 6)]
        (root / split / f"{name}.csv").write_text("\r\n".join(lines) + "\r\n")


def values(samples: Samples, federation: FileFederation) -> list[int]:
    """The gray value of each image, in order."""
    found: list[int] = []
    for batch in samples.batches(4):
        gray = (batch.x[:, 0, 0, 0] * float(federation.deviation[0]) + float(federation.mean[0])) * 255
        found += torch.round(gray).int().tolist()
    return found
