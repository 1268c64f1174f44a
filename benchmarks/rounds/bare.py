"""The floor: a loop over two worker processes with one thread each, in plain PyTorch and multiprocessing."""

from __future__ import annotations

import time
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
import torch

from benchmarks.rounds import data, models
from benchmarks.rounds.task import LEARNING_RATE, WORKERS, Task, read_task, write_result


def serve(task: Task, clients: range, pipe: Connection) -> None:
    """A worker: keeps its clients' samples and one model; gives the mean of its clients' models for a global one."""
    torch.set_num_threads(1)
    arrays = data.load(task.data, task.workload)
    samples = [tuple(map(torch.from_numpy, arrays.client(client))) for client in clients]
    module = models.build(task.settings.model)
    while True:
        message = pipe.recv()
        if message is None:
            return
        start = {name: torch.from_numpy(values) for name, values in message.items()}
        total: dict[str, torch.Tensor] = {}
        for images, labels in samples:
            module.load_state_dict(start)
            optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
            data.train_epoch(module, optimizer, images, labels)
            for name, values in module.state_dict().items():
                if name not in total:
                    total[name] = torch.zeros_like(values)
                total[name] += values
        pipe.send({name: values.numpy() for name, values in total.items()})


def main() -> None:
    task = read_task()
    torch.set_num_threads(1)
    clients = task.settings.clients
    context = get_context("spawn")
    pipes, processes = [], []
    for worker in range(WORKERS):
        here, there = context.Pipe()
        own = range(worker * clients // WORKERS, (worker + 1) * clients // WORKERS)
        processes.append(context.Process(target=serve, args=(task, own, there), daemon=True))
        processes[-1].start()
        pipes.append(here)
    module = models.build(task.settings.model)
    state = {name: values.numpy().copy() for name, values in module.state_dict().items()}
    starts = []
    for _ in range(task.rounds):
        starts.append(time.time())
        for pipe in pipes:
            pipe.send(state)
        totals = [pipe.recv() for pipe in pipes]
        for name, values in state.items():  # every client has equally many samples
            mean = sum(total[name] for total in totals) / clients
            state[name] = np.asarray(mean, values.dtype)  # BatchNorm's counters stay integers
    end = time.time()
    for pipe in pipes:
        pipe.send(None)
    module.load_state_dict({name: torch.from_numpy(values) for name, values in state.items()})
    write_result(task, starts, end, data.accuracy(module, data.load(task.data, task.workload)), "torch", "torchvision")


if __name__ == "__main__":
    main()
