"""APPFL's half, in an environment of its own: it imports nothing of raysim, and APPFL loads model and data from it.

``python appfl_run.py TASK.json`` writes what arrived and the seconds to the task's ``result``.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset


def net() -> nn.Module:
    """The model; raysim's ``mlp`` with one hidden layer of 64."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 64), nn.ReLU(), nn.Linear(64, 10))


def dataset(path: str, client: int) -> tuple[TensorDataset, None]:
    """One client's samples."""
    with np.load(path) as file:
        x, y = file[f"x{client}"], file[f"y{client}"]
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), None


def accuracy(true: Any, predicted: Any) -> float:
    """The metric of its examples, which the trainer wants."""
    return float(100 * np.mean(true == np.argmax(predicted, axis=1)))


def main(task: dict[str, Any]) -> None:
    """Build the agents as APPFL's examples do, run its driver, and write what came when."""
    from appfl.agent import ClientAgent, ServerAgent
    from appfl.config import ClientAgentConfig, ServerAgentConfig
    from appfl.vsim import AsyncSimDriver, ClientProfile
    from omegaconf import OmegaConf

    clients, here = len(task["factors"]), str(Path(__file__).resolve())
    quiet = {"logging_output_dirname": "log", "logging_output_filename": "log"}
    memory = {"optimize_memory": task["optimize_memory"]}
    training = {
        **memory,
        "trainer": "VanillaTrainer",
        "mode": "epoch",
        "num_local_epochs": 1,
        "optim": "SGD",
        "optim_args": {"lr": task["learning_rate"]},
        "loss_fn": "CrossEntropyLoss",
        "metric_path": here,
        "metric_name": "accuracy",
        "train_batch_size": task["batch_size"],
        "do_validation": False,
        "device": "cpu",
        **quiet,
    }
    model = {"model_path": here, "model_name": "net"}
    server = ServerAgent(
        ServerAgentConfig(
            client_configs=OmegaConf.create({"train_configs": training, "model_configs": model}),
            server_configs=OmegaConf.create(
                {
                    "num_clients": clients,
                    "num_global_epochs": task["updates"],
                    "scheduler": "AsyncScheduler",
                    "aggregator": "FedBuffAggregator",
                    "aggregator_kwargs": {"K": task["buffer"], "client_weights_mode": "equal", **memory},
                    "scheduler_kwargs": memory,
                    **memory,
                    **quiet,
                }
            ),
        )
    )
    agents = [
        ClientAgent(
            ClientAgentConfig(
                train_configs=OmegaConf.create(training),
                model_configs=OmegaConf.create(model),
                data_configs=OmegaConf.create(
                    {
                        "dataset_path": here,
                        "dataset_name": "dataset",
                        "dataset_kwargs": {"path": task["data"], "client": client},
                    }
                ),
                additional_configs=OmegaConf.create({}),
            )
        )
        for client in range(clients)
    ]
    for client, agent in enumerate(agents):
        agent.client_id = str(client)
        agent.optimize_memory = task["optimize_memory"]
    profiles = {
        str(client): ClientProfile(factor, bandwidth)
        for client, (factor, bandwidth) in enumerate(zip(task["factors"], task["bandwidths"], strict=True))
    }
    logging.disable(logging.CRITICAL)
    started, before = time.perf_counter(), time.process_time()
    driver = AsyncSimDriver(
        server, agents, profiles, task["concurrency"], logging.getLogger("vsim"), base_step_time=task["step_seconds"]
    )
    driver.run()
    arrivals = [[int(one["cid"]), one["vtime"], one["staleness"]] for one in driver.history]
    result = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - before, "arrivals": arrivals}
    Path(task["result"]).write_text(json.dumps(result))


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = json.loads(Path(sys.argv[1]).read_text())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main(given)
