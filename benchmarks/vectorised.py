"""Seconds that n clients' visits take: one after another, as one batched program, and on actors with a share of a GPU.

    python benchmarks/vectorised.py --device cuda --clients 10,50,100 --actors 4,8
    python benchmarks/vectorised.py --device cpu --clients 8 --samples 100 --models cnn,mlp

FedAvg on synthetic 32×32 images, SGD, one local epoch; MobileNet without dropout, which the vectorised form refuses. In
this process: a call with all clients, one after another and in groups (``engine.vectorise``), A B A B, medians; the
largest difference of the two forms' updates stands beside it (an untrained MobileNet multiplies rounding errors from
step to step; in float64 the two forms agree to 1e-13). With ``--actors`` (on a GPU only): whole runs on Ray with
1/k of the GPU for each of k actors, the rounds' training time without the first, with each client alone and in groups.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raysim import seeds
from raysim.config import RunConfig, build
from raysim.method import Update
from raysim.packing import Packed, PackedMessage
from raysim.simulation import run
from raysim.training import Visit
from raysim.visits import TrainBlock
from raysim.worker import Worker, fixed_threads

TRAINING_SHARE = 0.8
MODELS: dict[str, dict[str, Any]] = {"cnn": {}, "mlp": {}, "mobilenet": {"model.dropout": 0.0}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--models", default="cnn,mobilenet,mlp")
    parser.add_argument("--clients", default="10,50,100", help="comma-separated numbers of clients")
    parser.add_argument("--groups", default="8,0", help="clients trained together, powers of two; 0: all of them")
    parser.add_argument("--actors", default="", help="comma-separated k: also whole runs on k actors of 1/k GPU each")
    parser.add_argument("--samples", type=int, default=500, help="a client")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.actors and options.device == "cpu":
        parser.error("--actors shares a GPU; on a CPU the number of actors is that of its cores")
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"CPU, {options.threads} thread(s)"
    print(f"{where}, torch {torch.__version__}; {options.samples} samples a client, batch {options.batch}")
    print(f"{'model':10}{'clients':>8}  {'form':34}{'seconds':>9}{'speed-up':>9}{'GPU MiB':>9}  largest difference")
    with fixed_threads(options.threads):
        for model in options.models.split(","):
            for clients in numbers(options.clients):
                measure(model, clients, options)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def config_of(model: str, clients: int, options: argparse.Namespace, **more: Any) -> RunConfig:
    base: dict[str, Any] = {
        "method.name": "fedavg",
        "workload.name": "synthetic",
        "workload.clients": clients,
        "workload.partition": "iid",
        "workload.train_size": round(clients * options.samples / TRAINING_SHARE),
        "workload.test_share": 1 - TRAINING_SHARE,
        "workload.test_size": 100,
        "model.name": model,
        "training.batch_size": options.batch,
        "schedule.local_epochs": 1,
        "engine.threads": options.threads,
        "engine.dashboard": False,
    }
    return build([base | MODELS[model] | {key.replace("__", "."): value for key, value in more.items()}])


def measure(model: str, clients: int, options: argparse.Namespace) -> None:
    """All forms of one model and number of clients."""
    every = 1 << (clients - 1).bit_length()
    groups = sorted({min(group or every, every) for group in numbers(options.groups)})
    config = config_of(model, clients, options)
    federation = config.workload.load(lambda purpose: seeds.numpy_generator(config.seed, purpose))
    forms = {0: Worker(config, federation, options.device)}
    for group in groups:
        forms[group] = Worker(config_of(model, clients, options, engine__vectorise=group), federation, options.device)
    task = block(config, clients, federation)
    parameters = forms[0].model(0).take_shared()
    seconds: dict[int, list[float]] = {group: [] for group in forms}
    memory, deltas = dict.fromkeys(forms, 0.0), {}
    for repeat in range(options.repeats + 1):
        for group, worker in forms.items():
            if options.device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            started = time.perf_counter()
            result, _ = task.run(worker, (parameters,))  # its updates are on the CPU: nothing is left in flight
            if repeat > 0:  # the first one loads data and warms up
                seconds[group].append(time.perf_counter() - started)
            deltas[group] = [update.delta for update in result.updates if isinstance(update, Update)]
            if options.device == "cuda":
                memory[group] = torch.cuda.max_memory_allocated() / 2**20
    first = statistics.median(seconds[0])
    for group in forms:
        name = f"groups of {group}" if group else "one after another"
        differences = [float(np.abs(a - b).max()) for a, b in zip(deltas[0], deltas[group], strict=True)]
        taken = statistics.median(seconds[group])
        row = f"{model:10}{clients:>8}  {name:34}{taken:>9.3f}{first / taken:>8.2f}x{memory[group]:>9.0f}"
        print(row + (f"  {max(differences):.1e}" if group else ""), flush=True)
    forms.clear()
    if options.device == "cuda":
        torch.cuda.empty_cache()
    for actors in numbers(options.actors):
        for group in (0, *(group for group in groups if group * actors <= every)):
            taken = on_actors(model, clients, options, actors, group)
            name = f"{actors} actors of 1/{actors} GPU, " + (f"groups of {group}" if group else "alone")
            print(f"{model:10}{clients:>8}  {name:34}{taken:>9.3f}{first / taken:>8.2f}x", flush=True)


def block(config: RunConfig, clients: int, federation: Any) -> TrainBlock:
    """All clients' visits in one call."""
    rate = config.training.learning_rate
    visit = Visit(config.seed, 1, 0, 1, rate, config.training)
    packed = Packed((PackedMessage(0),) * clients, (None,) * clients, ())
    samples = tuple(federation.samples(client) for client in range(clients))
    return TrainBlock(
        0, visit, tuple(range(clients)), packed, samples, keeps=False, summed=True, sum_stays=False, each=True
    )


def on_actors(model: str, clients: int, options: argparse.Namespace, actors: int, group: int) -> float:
    """Median training time of a round on Ray."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(
            config_of(
                model,
                clients,
                options,
                engine__vectorise=group,
                engine__actors=actors,
                engine__gpus_per_client=1 / actors,
                engine__cpus_per_client=0,
                schedule__rounds=options.repeats + 1,
                evaluation__every=options.repeats + 1,
                engine__checkpoint_every=options.repeats + 1,
                output=str(Path(folder) / "run"),
            )
        )
    return float(result.rounds["seconds_train"].iloc[1:].median())


if __name__ == "__main__":
    main()
