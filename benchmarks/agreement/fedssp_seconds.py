"""Processor seconds of a client task of FedSSP in its authors' code, on the clients of a run of raysim's.

    python -m benchmarks.agreement.fedssp_seconds FedSSP '{"workload.setting": "SM", "schedule.rounds": 3}'

``FedSSP`` is a checkout of github.com/OakleyTan/FedSSP (e551b05). Its network, clients, server and rounds are run as
they are, AdamW and dropout included, in one thread; what it takes of dgl is in ``dgl_parts``, plain torch. It gets
raysim's graphs, split and spectra, so that no seconds of either hold their decomposition, and makes its mini-batches
once, as there. Judging, which its client tasks do at their end, is taken off. Prints a JSON object as
``benchmarks.client_tasks`` reads it, the median over the rounds behind the first.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn

from benchmarks.agreement import dgl_parts
from benchmarks.agreement.graph_authors import loaded
from raysim.config.run_config import RunConfig, build
from raysim.engine.load_federation import load_federation
from raysim.workloads.graphs.federation import GraphFederation
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.parallel_map import Sequential

Seconds = Mapping[str, Mapping[str, float]]


def measured(folder: Path, options: Mapping[str, Any]) -> Seconds:
    """Processor seconds of training, by the name of the client."""
    torch.set_num_threads(1)
    config = build([{**options}])
    federation: GraphFederation = load_federation(config, Sequential())  # type: ignore[assignment]
    client, models, server, training = loaded(folder, "client", "models", "server", "training")
    spent: dict[str, list[float]] = defaultdict(list)
    judged = [0.0]

    def judging(judge: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any) -> Any:
            started = time.process_time()
            found = judge(*given)
            judged[0] += time.process_time() - started
            return found

        return done

    def trained(train: Callable[..., Any]) -> Callable[..., Any]:
        def done(own: Any, *given: Any) -> Any:
            started, before = time.process_time(), judged[0]
            found = train(own, *given)
            spent[own.name].append(time.process_time() - started - (judged[0] - before))
            return found

        return done

    clients = [theirs(config, federation, number, client, models) for number in range(federation.clients)]
    given = SimpleNamespace(alg="fedSSP")
    with contextlib.ExitStack() as stack:
        for name, change in (
            ("train_gc_SSP", trained),
            ("eval_gc_val_SSP", judging),
            ("eval_gc_test_SSP", judging),
        ):
            stack.enter_context(mock.patch.object(client, name, change(getattr(client, name))))
        stack.enter_context(mock.patch.object(training, "proscess_loader", lambda loader, device: loader))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        writer = SimpleNamespace(add_scalar=lambda *given: None)
        its = server.Server(clients[0].model, "cpu")
        training.run_fedSSP(given, clients, its, config.schedule.rounds, 1, summary_writer=writer)
    return {"train": {name: statistics.median(seconds[1:] or seconds) for name, seconds in spent.items()}}


def theirs(config: RunConfig, federation: GraphFederation, number: int, client: Any, models: Any) -> Any:
    """A client of theirs with the graphs of one of ours; graphs without edges are left out, as there."""
    spec: Any = config.model
    part, inputs = federation.parts[number], federation.input_spec(number)
    width, size, generator = inputs.input_shape[0], config.training.batch_size, np.random.default_rng(number)
    network = models.SSP(inputs.classes, spec.layers, [width], 0, width, spec.heads, spec.hidden, *3 * [spec.dropout])
    head, network.fc = network.fc, nn.Identity()
    options = SimpleNamespace(device="cpu", tau_weight=100.0, momentum=0.5, hidden=spec.hidden, lr=0.005)
    loaders = {
        name: batches(part.graphs, generator.permutation(chosen), size)
        for name, chosen in (("train", part.train), ("val", part.validation), ("test", part.test))
    }
    model = models.Split_model(network, head)
    return client.Client_GC(model, number, federation.client_name(number), len(part.train), loaders, None, options)


def batches(graphs: Graphs, chosen: Any, size: int) -> list[Any]:
    """Mini-batches in their form."""
    chosen = chosen[graphs.edge_counts[chosen] > 0]
    return [dgl_parts.batch(graphs.subset(chosen[start : start + size])) for start in range(0, len(chosen), size)]


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]), json.loads(sys.argv[2]))))
