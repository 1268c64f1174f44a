"""Milliseconds a client of calls whose clients take a single step, by how many of them are merged into one batch.

    python -m benchmarks.single_step
    python -m benchmarks.single_step --models mlp --samples 50 --processes 2

FedAvg on synthetic 3x32x32 images, SGD, one batch of all samples of a client, one thread. Every call has all clients,
from the same model; sizes take turns, each is run once before. With ``--processes`` that many do the same at once.
Processor time; ``--rows FILE`` adds the rows to a CSV file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.published import add
from raysim import seeds
from raysim.client_side.train_chunk import TrainChunk
from raysim.client_side.worker import Worker, fixed_threads
from raysim.config.run_config import build
from raysim.exchange.payload import Packed, PackedMessage, Returned
from raysim.method import ClientTask

SIZES = (1, 2, 4, 8, 16, 32)
TRAINING_SHARE = 0.8
_shared: dict[str, Any] = {}
"""In a process that measures: the barrier of all of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mlp,cnn", help="comma-separated")
    parser.add_argument("--samples", default="50,5", help="of each client, comma-separated")
    parser.add_argument("--clients", type=int, default=32, help="of a call, a multiple of 32")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rows", type=Path, help="CSV file that the rows are added to")
    options = parser.parse_args()
    print("| model | samples a client | " + " | ".join(map(str, SIZES)) + " |")
    context = multiprocessing.get_context("spawn")
    for model in options.models.split(","):
        for samples in map(int, options.samples.split(",")):
            barrier = context.Barrier(options.processes)
            with context.Pool(options.processes, _share, (barrier,)) as pool:
                arguments = (model, samples, options.clients, options.repeats)
                rows = pool.starmap(measure, [arguments] * options.processes, chunksize=1)
            for row in rows:
                cells = [f"{value:.3g} ({value / row[0]:.2f}x)" for value in row]
                print(f"| {model} | {samples} | " + " | ".join(cells) + " |", flush=True)
                if options.rows:
                    about = {name: getattr(options, name) for name in ("clients", "processes")}
                    merged = {f"merged_{size}_ms": round(value, 3) for size, value in zip(SIZES, row, strict=True)}
                    add(options.rows, {"model": model, "samples": samples} | about | merged)


def _share(barrier: Any) -> None:
    _shared["barrier"] = barrier


def measure(model: str, samples: int, clients: int, repeats: int) -> list[float]:
    """The medians for every size, in order."""
    config = build(
        [
            {
                "method.name": "fedavg",
                "model.name": model,
                "workload.name": "synthetic",
                "workload.train_size": round(samples * clients / TRAINING_SHARE),
                "workload.test_size": 10,
                "workload.clients": clients,
                "workload.partition": "iid",
                "workload.min_samples": 1,
                "training.batch_size": samples,
            }
        ]
    )
    with fixed_threads(1):
        worker = Worker(config, config.workload.load(lambda purpose: seeds.numpy_generator(config.seed, purpose)))
        everyone = tuple(range(clients))
        counts = tuple(worker.federation.samples(client) for client in everyone)
        task = ClientTask(config.seed, 1, 0, 1, config.training.learning_rate, config.training)
        packed = Packed((PackedMessage(0),) * clients, (None,) * clients, ())
        start = worker.model(0).take_shared()
        seconds: dict[int, list[float]] = {size: [] for size in SIZES}
        for _ in range(repeats + 1):
            for size in SIZES:
                call = TrainChunk(0, task, everyone, packed, counts, Returned(sums=True), size)
                _shared["barrier"].wait(60)
                before = time.process_time()
                call.run(worker, (start,))
                seconds[size].append(time.process_time() - before)
    return [1e3 * statistics.median(seconds[size][1:]) / clients for size in SIZES]


if __name__ == "__main__":
    main()
