"""Random streams as a run gives them to its workload."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest

Stream = Callable[[str], np.random.Generator]


@pytest.fixture
def stream() -> Stream:
    return lambda purpose: np.random.default_rng([7, zlib.crc32(purpose.encode())])
