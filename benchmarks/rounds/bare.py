"""The floor: a loop over two worker processes with one thread each, in plain PyTorch and multiprocessing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
import torch

from benchmarks.rounds import data, models
from benchmarks.rounds.task import WORKERS, Task, read_task, write_result


def serve(task: Task, pipe: Connection) -> None:
    """A worker: keeps all samples and one model; gives the sum of the models of the clients that it is asked for."""
    torch.set_num_threads(1)
    arrays = data.load(task.data, task.workload)
    module = models.build(task.settings.model)
    while True:
        message = pipe.recv()
        if message is None:
            return
        clients, state = message
        start = {name: torch.from_numpy(values) for name, values in state.items()}
        total: dict[str, torch.Tensor] = {}
        for client in clients:
            module.load_state_dict(start)
            data.train_epoch(module, arrays, client, task.settings)
            for name, values in module.state_dict().items():
                if name not in total:
                    total[name] = torch.zeros_like(values)
                total[name] += values
        pipe.send({name: values.numpy() for name, values in total.items()})


def cohorts(task: Task) -> Iterator[list[int]]:
    """The clients of each round: all in order, or as many as take part drawn at random."""
    settings, random = task.settings, np.random.default_rng(0)
    for _ in range(task.rounds):
        if settings.cohort:
            yield random.choice(settings.clients, settings.cohort, replace=False).tolist()
        else:
            yield list(range(settings.clients))


def main() -> None:
    task = read_task()
    torch.set_num_threads(1)
    count = task.settings.participants
    context = get_context("spawn")
    pipes, processes = [], []
    for _ in range(WORKERS):
        here, there = context.Pipe()
        processes.append(context.Process(target=serve, args=(task, there), daemon=True))
        processes[-1].start()
        pipes.append(here)
    module = models.build(task.settings.model)
    state = {name: values.numpy().copy() for name, values in module.state_dict().items()}
    starts = []
    for clients in cohorts(task):
        starts.append(time.time())
        for worker, pipe in enumerate(pipes):
            pipe.send((clients[worker * count // WORKERS : (worker + 1) * count // WORKERS], state))
        totals = [pipe.recv() for pipe in pipes]
        for name, values in state.items():  # every client has equally many samples
            mean = sum(total[name] for total in totals) / count
            state[name] = np.asarray(mean, values.dtype)  # BatchNorm's counters stay integers
    end = time.time()
    for pipe in pipes:
        pipe.send(None)
    module.load_state_dict({name: torch.from_numpy(values) for name, values in state.items()})
    write_result(task, starts, end, data.accuracy(module, data.load(task.data, task.workload)), "torch", "torchvision")


if __name__ == "__main__":
    main()
