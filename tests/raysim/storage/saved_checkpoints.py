"""A small checkpoint, and how it is saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raysim.storage import checkpoint
from raysim.storage.client_shards import ClientFiles
from raysim.storage.pytree import JSON


@dataclass(frozen=True)
class Server:
    weights: Any
    clusters: Any = None
    step: int = 0


@dataclass(frozen=True)
class Kept:
    control: Any


SERVER = Server(np.arange(6, dtype=np.float32).reshape(2, 3), {"members": [1, 2], 3: np.array([True])}, 7)


KEPT = {0: Kept(np.array([0.5, np.nan])), 4: Kept(np.zeros(2)), 9: Kept(np.full(2, -0.0))}


SERVER_TEMPLATE = Server(np.zeros((2, 3), np.float32))


FACTS: Mapping[str, JSON] = {"config": "abc", "epochs": 12}


def save(folder: Path, round: int = 3, keep: int = 2, server: Any = SERVER) -> Path:
    return checkpoint.save(folder, round, server, KEPT, KEPT.__getitem__, FACTS, keep, ClientFiles())


def load(path: Path) -> checkpoint.Checkpoint:
    return checkpoint.load(path, SERVER_TEMPLATE, lambda client: Kept(np.zeros(2)))
