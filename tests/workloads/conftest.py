"""Random streams as a run gives them to its workload."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

import numpy as np
import pytest

Stream = Callable[[str], np.random.Generator]
needs_data = pytest.mark.skipif("RAYSIM_DATA" not in os.environ, reason="RAYSIM_DATA is not set")


def seeded(purpose: str) -> np.random.Generator:
    return np.random.default_rng([7, zlib.crc32(purpose.encode())])


@pytest.fixture
def stream() -> Stream:
    return seeded
