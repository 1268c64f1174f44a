"""pfl-research: its FederatedAveraging with one worker process a core, joined by torch.distributed (gloo).

It shares parameters alone: BatchNorm's running means and variances stay in each worker and go from client to client.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import Any

from benchmarks.rounds.task import WORKERS, Task, read_task, write_result

RANK, ADDRESSES = "PFL_WORKER_RANK", "PFL_WORKER_ADDRESSES"


def main() -> None:
    task = read_task()
    others = []
    if RANK not in os.environ:  # this process is the first worker and starts the others
        os.environ[ADDRESSES] = ",".join(f"localhost:{port}" for port in free_ports(WORKERS))
        for rank in range(1, WORKERS):
            command = [sys.executable, "-m", "benchmarks.rounds.pfl_app", *sys.argv[1:]]
            others.append(subprocess.Popen(command, env={**os.environ, RANK: str(rank)}))
        os.environ[RANK] = "0"
    os.environ["PFL_PYTORCH_DEVICE"] = "cpu"
    train(task, writes=os.environ[RANK] == "0")
    if any(other.wait() for other in others):
        raise RuntimeError("another worker failed")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def train(task: Task, *, writes: bool) -> None:
    # After the environment is set: pfl joins the workers when it is imported.
    import numpy as np
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    from benchmarks.rounds import data, models

    class Trained(torch.nn.Module):
        """The model with the two methods that pfl asks for."""

        def __init__(self, module: torch.nn.Module) -> None:
            super().__init__()
            self.module = module

        def loss(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            self.train()
            return torch.nn.functional.cross_entropy(self.module(arrays.batch(inputs)), labels)

        def metrics(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
            return {}

    times: list[float] = []

    class Clock(TrainingProcessCallback):  # type: ignore[misc]
        def on_train_begin(self, *, model: Any) -> Metrics:
            times.append(time.time())
            return Metrics()

        def after_central_iteration(
            self, aggregate_metrics: Any, model: Any, *, central_iteration: int
        ) -> tuple[bool, Metrics]:
            times.append(time.time())
            return False, Metrics()

    torch.set_num_threads(1)
    np.random.seed(0)
    settings = task.settings
    arrays = data.load(task.data, task.workload)

    def samples(client: int) -> Dataset:
        inputs, labels = map(torch.from_numpy, arrays.client(client))
        order = torch.randperm(len(labels))
        return Dataset((inputs[order], labels[order]), user_id=str(client))

    clients = list(range(settings.clients))
    users = FederatedDataset(samples, get_user_sampler("minimize_reuse", clients))
    module = Trained(models.build(settings.model))
    model = PyTorchModel(
        model=module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
    )
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=task.rounds,
            evaluation_frequency=task.rounds + 1,
            train_cohort_size=settings.participants,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=users, val_data=users, postprocessors=[WeightByDatapoints()]),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1,
            local_learning_rate=settings.learning_rate,
            local_batch_size=settings.batch_size,
        ),
        callbacks=[Clock()],
    )
    if writes:
        accuracy = data.accuracy(module.module, arrays)
        write_result(task, times[:-1], times[-1], accuracy, "pfl", "torch", "torchvision")


if __name__ == "__main__":
    main()
