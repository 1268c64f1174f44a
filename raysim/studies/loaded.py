"""The packages that every cell's run needs: the server from which cells are forked loads them once."""

from __future__ import annotations

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import safetensors.torch  # noqa: F401
import torch  # noqa: F401

import raysim.driver.drive
import raysim.running.simulation  # noqa: F401
