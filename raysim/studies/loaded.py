"""The packages that every cell's run needs: the server from which cells are forked loads them once."""

from __future__ import annotations

import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import safetensors.torch  # noqa: F401
import torch  # noqa: F401

import raysim.client_side.train_chunk
import raysim.engine.cohort_run
import raysim.engine.precision_probe
import raysim.engine.recovery
import raysim.engine.rounds
import raysim.monitor.chrome_trace
import raysim.monitor.partition_plot
import raysim.results.result
import raysim.running.repeat_check
import raysim.running.simulation
import raysim.running.summary  # noqa: F401
