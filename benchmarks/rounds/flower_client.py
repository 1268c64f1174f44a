"""Flower's client half, as its PyTorch quickstart has it; data and model are kept by each worker process."""

from __future__ import annotations

import functools

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from benchmarks.rounds import data, models
from benchmarks.rounds.task import Task

app = ClientApp()


@functools.cache
def arrays(path: str, workload: str) -> data.Arrays:
    torch.set_num_threads(1)
    return data.load(path, workload)


@functools.cache
def model(name: str) -> torch.nn.Module:
    return models.build(name)


@app.train()
def train(message: Message, context: Context) -> Message:
    config = message.content["config"]
    task = Task(config["workload"], config["data"], 0, "")
    client = int(context.node_config["partition-id"])
    own = arrays(task.data, task.workload)
    module = model(task.settings.model)
    module.load_state_dict(message.content["arrays"].to_torch_state_dict())
    data.train_epoch(module, own, client, task.settings)
    content = RecordDict(
        {"arrays": ArrayRecord(module.state_dict()), "metrics": MetricRecord({"num-examples": own.samples})}
    )
    return Message(content=content, reply_to=message)
