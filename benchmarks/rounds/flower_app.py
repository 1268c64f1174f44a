"""Flower's simulation engine: its FedAvg over one Ray actor a core, everything else as it comes."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from benchmarks.rounds.task import WORKERS, read_task, write_result


def main() -> None:
    task = read_task()
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "FLWR_HOME": tempfile.mkdtemp()}
    import torch
    from flwr.app import ArrayRecord, ConfigRecord, Context
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    from benchmarks.rounds import data, flower_client, models

    torch.set_num_threads(1)
    settings = task.settings
    starts: list[float] = []
    ends: list[float] = []
    final: dict[str, Any] = {}

    class Timed(FedAvg):  # type: ignore[misc]
        """Notes when rounds begin and when their aggregation is done."""

        def configure_train(self, *arguments: Any, **named: Any) -> Any:
            starts.append(time.time())
            return super().configure_train(*arguments, **named)

        def aggregate_train(self, *arguments: Any, **named: Any) -> Any:
            result = super().aggregate_train(*arguments, **named)
            ends.append(time.time())
            return result

    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        module = models.build(settings.model)
        strategy = Timed(
            fraction_train=settings.participants / settings.clients,
            fraction_evaluate=0.0,
            min_available_nodes=settings.clients,
        )
        result = strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(module.state_dict()),
            num_rounds=task.rounds,
            train_config=ConfigRecord({"workload": task.workload, "data": task.data}),
        )
        final.update(result.arrays.to_torch_state_dict())

    run_simulation(
        server_app=server,
        client_app=flower_client.app,
        num_supernodes=settings.clients,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": WORKERS}},
    )
    module = models.build(settings.model)
    module.load_state_dict(final)
    accuracy = data.accuracy(module, data.load(task.data, task.workload))
    write_result(task, starts, ends[-1], accuracy, "flwr", "ray", "torch", "torchvision")


if __name__ == "__main__":
    main()
