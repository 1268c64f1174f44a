"""Fine-tuning before evaluation: what the global model is worth to a client that trains it on its own data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from raysim.client_side.train_chunk import kept_globals, seed_globals, too_few_samples
from raysim.method import ClientTask
from raysim.training.local_sgd import Phase, train_epochs

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.flat_model import FlatModel
    from raysim.workloads.federated_data import Samples

STREAM = "fine-tune"
"""The purpose of the random streams: shuffling, augmentation and dropout."""


@dataclass(frozen=True)
class FineTuning:
    """Plain local training of the judged model by the run's optimizer settings; it changes nothing of the run.

    A client trains as in FedAvg's client task, ``evaluation.fine_tune`` epochs at the learning rate of the judged round
    with the loss of the data, whatever the method adds to it, and nothing leaves the client. Source: Yu et al. 2020,
    Salvaging federated learning by local adaptation (arXiv 2002.04758), fine-tuning.

    With ``training.optimizer_state kept`` it goes on from the moments that the client's task has left, so that what is
    judged is the model that FedAvg's next client task would make, but for the draws of shuffling and dropout.
    """

    task: ClientTask
    """All client tasks, but for client, classes and objective."""
    clients: int
    """The first of all clients, those that can take part; the others keep the global model."""

    def tune(
        self, worker: Worker, model: FlatModel, client: int, samples: Samples, kept: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Train a client's judged model in place; one that has too few samples to train on keeps it.

        Args:
            kept: what the optimizers of the client's trainings ended with, by the names that ``train_epochs`` gives.
        """
        if client >= self.clients or too_few_samples(model.module, len(samples), self.task.training.freeze_batchnorm):
            return
        classes = worker.federation.input_spec(client).classes
        plain = Phase().stream
        model.optimizer_states = {
            STREAM + name.removeprefix(plain): state for name, state in kept.items() if name.startswith(f"{plain} ")
        }
        task = replace(self.task, client=client, classes=classes, objective=worker.objective)
        with kept_globals(worker.own_code):
            seed_globals(task, worker.own_code, f"{STREAM} global")
            train_epochs(model, samples, task, phase=Phase(STREAM))


def fine_tuning(config: RunConfig, round: int, clients: int) -> FineTuning | None:
    """The fine-tuning of an evaluation after a round; None where the config asks for none."""
    if not config.evaluation.fine_tune:
        return None
    epochs, rate = config.evaluation.fine_tune, config.training.rate_in(round)
    return FineTuning(ClientTask(config.seed, round, 0, epochs, rate, config.training), clients)
