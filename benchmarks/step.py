"""Processor time of a training step, and of a whole client task of five, beside a bare loop's, in milliseconds.

    python -m benchmarks.step                                    # P2's network with batches of 10, 20 and 50
    python -m benchmarks.step --models cnn blazefl_cnn --batches 50 --precisions float32
    python -m benchmarks.step --batches 10 --profile             # what torch calls in raysim's steps, by time

*step* is the local epoch alone, by raysim's training loop and by one as anybody would write it (channels first, a new
torch.optim.SGD for each client, torch's own draws). *client* has beside it what brings a client its model and takes its
update: a call of several clients with their sum, and ``load_state_dict`` and a sum of state dicts. The two take turns
within one process with one thread, which keeps freed memory as client actors do; the figures are medians, and the ratio
is the median of the ratios of neighbors. Processor time changes less than seconds do beside other programs.
``--rows FILE`` adds the rows to a CSV file.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.published import add
from benchmarks.rounds import models
from benchmarks.rounds.data import Arrays, train_epoch
from benchmarks.rounds.raysim_models import MODELS
from benchmarks.rounds.task import Workload
from raysim import seeds
from raysim.client_side.allocator import keep_freed_memory
from raysim.client_side.train_chunk import TrainChunk
from raysim.client_side.worker import Worker, fixed_threads
from raysim.config.run_config import RunConfig, build
from raysim.exchange.payload import Packed, PackedMessage, Returned
from raysim.flat_model import to_numpy
from raysim.method import ClientTask
from raysim.training.local_sgd import train_epochs

STEPS = 5
CLIENTS = 2
RATE = 0.01
Timed = dict[str, Callable[[], object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["simple_cnn"])
    parser.add_argument("--batches", nargs="+", type=int, default=[10, 20, 50])
    parser.add_argument("--precisions", nargs="+", choices=["float32", "bf16"], default=["float32", "bf16"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--rows", type=Path, help="CSV file that the rows are added to")
    options = parser.parse_args()
    keep_freed_memory()
    print("| model | batch | precision | step: bare, ms | raysim | of bare | client: bare, ms | raysim | of bare |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in options.models:
        for batch in options.batches:
            for precision in options.precisions:
                with fixed_threads(1):
                    timed = sides(model, batch, precision)
                    if options.profile:
                        profile(timed["raysim step"])
                        continue
                    found = row(model, batch, precision, measured(timed, options.repeats))
                    print("| " + " | ".join(map(str, found.values())) + " |", flush=True)
                    if options.rows:
                        add(options.rows, found)


def config_of(model: str, batch: int, precision: str) -> RunConfig:
    """A run of clients with a few batches each."""
    options = MODELS[model]
    return build(
        [
            {
                "method.name": "fedavg",
                "model.name": f"{type(options).__module__}:{type(options).__name__}",
                "workload.name": "synthetic",
                "workload.train_size": CLIENTS * STEPS * batch,
                "workload.test_size": 10,
                "workload.clients": CLIENTS,
                "workload.partition": "iid",
                "workload.local_test": "global",
                "training.batch_size": batch,
                "training.learning_rate": RATE,
                "training.precision": precision,
                "schedule.local_epochs": 1,
            }
        ]
    )


def sides(model: str, batch: int, precision: str) -> Timed:
    """Functions that are timed, by name: each of them does the work of ``CLIENTS`` clients."""
    config = config_of(model, batch, precision)
    worker = Worker(config, config.workload.load(lambda purpose: seeds.numpy_generator(config.seed, purpose)))
    everyone = tuple(range(CLIENTS))
    task = ClientTask(config.seed, 1, 0, 1, RATE, config.training, objective=worker.objective, classes=10)
    start = worker.model(0).take_shared()
    packed = Packed((PackedMessage(0),) * CLIENTS, (None,) * CLIENTS, ())
    chunk = TrainChunk(0, task, everyone, packed, (STEPS * batch,) * CLIENTS, Returned(sums=True))
    settings = Workload("step", model, CLIENTS, STEPS * batch, 0, 0, 0, "", batch_size=batch, learning_rate=RATE)
    arrays, module = plain_arrays(worker, STEPS * batch), models.build(model)
    state = {name: values.clone() for name, values in module.state_dict().items()}

    def raysim_steps() -> None:
        for client in everyone:
            own = worker.built(client)
            own.load_shared(start)
            train_epochs(own, worker.data(client).train, replace(task, client=client))

    def bare_steps() -> None:
        for client in everyone:
            train_epoch(module, arrays, client, settings)

    def bare_clients() -> None:
        total = {name: torch.zeros_like(values) for name, values in state.items()}
        for client in everyone:
            module.load_state_dict(state)
            train_epoch(module, arrays, client, settings)
            for name, values in module.state_dict().items():
                total[name] += values

    return {
        "bare step": bare_steps,
        "raysim step": raysim_steps,
        "bare client": bare_clients,
        "raysim client": lambda: chunk.run(worker, (start,)),
    }


def plain_arrays(worker: Worker, samples: int) -> Arrays:
    """The clients' samples as the bare loop has them, channels first."""
    found = [next(iter(worker.federation.client(client, "cpu").train.batches(samples))) for client in range(CLIENTS)]
    images = to_numpy(torch.cat([batch.x for batch in found]).contiguous())
    labels = torch.cat([batch.y for batch in found]).numpy()
    return Arrays(images, labels, images[:0], labels[:0], samples)


def measured(timed: Timed, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each, in turns, after one turn that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeats + 1):
        for name, work in timed.items():
            before = time.process_time()
            work()
            seconds[name].append(1e3 * (time.process_time() - before) / CLIENTS)
    return {name: values[1:] for name, values in seconds.items()}


def row(model: str, batch: int, precision: str, found: dict[str, list[float]]) -> dict[str, Any]:
    cells: dict[str, Any] = {"model": model, "batch": batch, "precision": precision}
    for kind, parts in (("step", STEPS), ("client", 1)):
        bare, own = found[f"bare {kind}"], found[f"raysim {kind}"]
        ratio = statistics.median(mine / theirs for mine, theirs in zip(own, bare, strict=True))
        cells[f"{kind}_bare_ms"] = f"{statistics.median(bare) / parts:.3g}"
        cells[f"{kind}_raysim_ms"] = f"{statistics.median(own) / parts:.3g}"
        cells[f"{kind}_ratio"] = f"{ratio:.2f}"
    return cells


def profile(work: Callable[[], object]) -> None:
    """Print what torch called, the longest first."""
    work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        work()
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=30, max_name_column_width=50))


if __name__ == "__main__":
    main()
