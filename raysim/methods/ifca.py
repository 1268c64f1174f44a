"""IFCA: several global models, of which every client trains the one that fits its data best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raysim import seeds
from raysim.aggregators.means import sample_weights, weighted_sum
from raysim.method import ClientTask, Context, FlatModel, Message, Traits, Update, Updates, Vector, WholeModel
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, PositiveInt

_READS = "whose server reads which model fits a client's data best"


@dataclass(frozen=True)
class Server:
    models: tuple[Vector, ...]
    """θ_1 to θ_k, each the shared entries of a model [d]."""


@dataclass(frozen=True)
class IFCA(WholeModel[Server, int]):
    """IFCA: FedAvg inside clusters, to which clients assign themselves anew in every task.

    Source: Ghosh et al. 2020, An efficient framework for clustered federated learning (NeurIPS; arXiv 2006.04088),
    Algorithm 1 with model averaging. Client i receives all k models, trains the one of least loss on its training data,

        j_i = argmin_j F_i(θ_j),

    to θ̃_i, and model j becomes the mean of the θ̃_i of the clients with j_i = j; without such a client it stays.

    Decided here:
    - Means are weighted by samples, as FedAvg's; the paper's clients have equally many.
    - F_i is measured in evaluation mode, without augmentation; of equal losses the first counts.
    - θ_1 is the initial model; in θ_2 to θ_k the values of each tensor that is trained are shuffled, which are other
      random values of the same distribution (but of pretrained values leaves nothing).
    - A client is judged by the model that it chose in its last task, by θ_1 before the first.
    - An update is one of the model that the client chose: a step of FedAsync mixes with that one.
    - No weight sharing between clusters (the paper's Section 6.3). BatchNorm's statistics belong to a cluster's model.
    """

    clusters: Annotated[PositiveInt, Help("number k of models", "Ghosh et al. 2020, 2 for rotated CIFAR-10")] = 2

    traits: ClassVar[Traits] = Traits(
        personal=True, one_vector=True, takes_stale=True, reads=_READS, reports=("clusters",)
    )

    def init_server(self, model: FlatModel) -> Server:
        first, before = model.take_shared(), model.parameters.numel() - model.shared_parameter_count
        models = [first.copy() for _ in range(self.clusters)]
        for number, values in enumerate(models[1:], 1):
            generator = seeds.numpy_generator(number, "initial values of clusters")
            for entry in model.entries:
                if entry.trained and entry.shared:
                    generator.shuffle(values[entry.start - before : entry.stop - before])
        return Server(tuple(models))

    def init_client(self, model: FlatModel) -> int:
        return 0

    def message(self, server: Server, client: int) -> Message:
        return Message(server.models[0], {"others": server.models[1:]})

    def started_from(self, message: Message, update: Update) -> Vector:
        return models_of(message)[int(update.metrics["cluster"])]

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: int, task: ClientTask
    ) -> tuple[Update, int]:
        from raysim.training.local_sgd import train_epochs
        from raysim.workloads.metrics import evaluate

        models, losses = models_of(message), []
        for values in models:
            model.load_shared(values)
            batches = data.train.batches(task.evaluation_batch)
            losses.append(evaluate(model.module, batches, task.classes, objective=task.objective).loss)
        chosen = int(np.argmin(np.nan_to_num(losses, nan=np.inf)))  # NaN would be the least
        model.load_shared(models[chosen])
        trained = train_epochs(model, data.train, task)
        return Update(model.change_from(models[chosen]), trained.metrics() | {"cluster": float(chosen)}), chosen

    def aggregate(self, server: Server, updates: Updates, context: Context) -> Server:
        chosen, models = updates.metric("cluster"), list(server.models)
        for cluster in np.unique(chosen).astype(int):
            rows = np.flatnonzero(chosen == cluster).tolist()
            weights = sample_weights(updates.samples[rows]).tolist()
            models[cluster] = models[cluster] + weighted_sum([updates.deltas[row] for row in rows], weights)
        context.report.round("clusters", float(len(np.unique(chosen))))
        return Server(tuple(models))

    def deploy(self, model: FlatModel, message: Message, state: int) -> None:
        model.load_shared(models_of(message)[state])


def models_of(message: Message) -> tuple[Vector, ...]:
    """θ_1 to θ_k as a client receives them."""
    return message.parameters, *message.extra["others"]


METHOD = IFCA
