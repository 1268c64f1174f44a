"""Chooses the number format of local training where ``training.precision`` is ``auto``: times both, once in a run.

Whether bfloat16 is faster depends on processor and model: with AMX or AVX512-BF16 it speeds up large convolutions, and
slows depthwise ones down. The run's folder keeps what was found, so that a resumed run goes on with the same
arithmetic.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from raysim.config.run_config import with_sections
from raysim.errors import DamagedError
from raysim.exchange.pool_protocol import Job, results_of
from raysim.storage.atomic_files import write_atomically
from raysim.storage.folder_files import is_there
from raysim.storage.untrusted_files import read_json
from raysim.training.gradients import autocast

if TYPE_CHECKING:
    from pathlib import Path

    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.exchange.pool_protocol import Pool

Precision = Literal["float32", "bf16"]
CHOICES: tuple[Precision, ...] = ("float32", "bf16")
GAIN = 0.95
"""bfloat16 is chosen if a step takes less than this share of float32's time."""
REPEATS = 5
SECONDS = 10.0
"""Timing stops after this time, once there is a time of each."""


def resolve(config: RunConfig, pool: Pool, folder: Path, note: Callable[[str], None]) -> RunConfig:
    """The config with ``training.precision`` decided: as it says, as this run's folder says, or by timing both.

    Args:
        pool: where the steps are timed, so that it is the device that trains.
        folder: the run's folder; ``precision.json`` in it holds the choice and the milliseconds behind it.
    """
    if config.training.precision != "auto":
        return config
    record = folder / "precision.json"
    if not is_there(record):
        job = Job(
            TimeSteps(config.training.batch_size), (), label="timing training in float32 and bfloat16", name="precision"
        )
        seconds: dict[str, float]
        (seconds,) = results_of(pool, [job], note)
        milliseconds = {name: round(1000 * value, 3) for name, value in seconds.items()}
        fast = seconds["bf16"] < GAIN * seconds["float32"]
        found = {"precision": "bf16" if fast else "float32", "milliseconds_a_step": milliseconds}
        write_atomically(record, json.dumps(found, indent=2).encode())
    try:
        kept = read_json(record)
        choice = kept["precision"]
        times = ", ".join(f"{name} {value}" for name, value in kept["milliseconds_a_step"].items())
        if choice not in CHOICES:
            raise ValueError(f"{str(choice)[:40]!a} is no number format")
    except (OSError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise DamagedError(f"damaged: {record}: {error}") from error
    note(f"trains in {choice} (milliseconds a step: {times})")
    return with_sections(config, training=dataclasses.replace(config.training, precision=choice))


@dataclasses.dataclass(frozen=True)
class TimeSteps:
    """Median seconds of a forward and a backward pass on a client's data, for each number format.

    The client is the first one with two samples, without which BatchNorm has no variance; where none has two, the
    first one with a sample.
    """

    batch_size: int

    def run(self, worker: Worker, inputs: Sequence[Any]) -> tuple[dict[str, float], list[Any]]:
        federation = worker.federation
        client = next(k for least in (2, 1) for k in range(federation.clients) if federation.samples(k) >= least)
        model, samples = worker.model(client), worker.data(client).train
        model.module.train()
        batch = next(iter(samples.batches(self.batch_size, torch.Generator().manual_seed(0))))
        taken: dict[str, list[float]] = {name: [] for name in CHOICES}
        began = time.perf_counter()
        for repeat in range(REPEATS + 1):  # alternately, so that a slow moment of the machine meets both
            for name in CHOICES:
                started = time.perf_counter()
                with autocast(name, worker.device):
                    value = worker.objective.mean_loss(model.module(batch.x), batch.y)
                value.backward()
                float(value.detach())  # waits for a GPU
                if repeat > 0:  # the first pass of each also chooses algorithms
                    taken[name].append(time.perf_counter() - started)
            if repeat > 0 and time.perf_counter() - began > SECONDS:
                break
        model.reset()
        return {name: statistics.median(seconds) for name, seconds in taken.items()}, []
