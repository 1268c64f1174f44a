"""pFedMe: personal models in the Moreau envelopes of the clients' losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from raysim.method import ClientTask, Context, FlatModel, Generator, Message, Traits, Update, Updates, Vector
from raysim.methods._halves import PersonalModel
from raysim.workloads.batch_bounds import LastBatch
from raysim.workloads.federated_data import Batch, ClientData, Samples
from raysim.workloads.option_types import Help, Positive, PositiveInt


@dataclass(frozen=True)
class PFedMe(PersonalModel):
    """pFedMe: the global model follows min_θ f_i(θ) + (λ/2)‖θ − w‖², whose minimizers θ_i(w) are the personal models.

    Source: Dinh et al. 2020, Personalized federated learning with Moreau envelopes (NeurIPS; arXiv 2006.08848),
    Algorithm 1. Client i starts from w_i = θ = w. For every mini-batch D, K times and then once,

        θ ← θ − η_p (∇f_i(θ; D) + λ (θ − w_i));    w_i ← w_i − η λ (w_i − θ).

    The server takes the mean, w ← (1 − β) w + β Σ_{i∈S} p_i w_i, with p_i = m_i / Σ_{j∈S} m_j.

    Decided here:
    - θ goes on from one mini-batch to the next, as in the authors' code; the paper only asks that θ be near enough
      to the minimizer. η is the learning rate of the round; the optimizer of ``training`` makes the steps of θ.
    - The mean is by samples, as in the authors' code; the print has equal clients.
    - A client is judged by the θ that its last task ended with, on its own test set; until then by the global model.
    - BatchNorm's statistics are those of the personal model's training, and averaged by samples whatever β is.
    """

    envelope: Annotated[Positive, Help("weight λ of the distance to w_i", "authors' code")] = 15.0
    personal_steps: Annotated[PositiveInt, Help("steps K of θ on a mini-batch", "authors' code")] = 5
    personal_rate: Annotated[
        Positive, Help("learning rate η_p of θ; η_p·λ < 2, or it diverges", "0.09 in the authors' code")
    ] = 0.01
    server_rate: Annotated[Positive, Help("step β of the server", "authors' code")] = 1.0

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True, judged_apart=True)

    def __post_init__(self) -> None:
        if self.personal_rate * self.envelope >= 2:
            raise ValueError(f"personal_rate {self.personal_rate} × envelope {self.envelope} must be < 2; lower one.")

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.flat_model import to_numpy
        from raysim.training.local_sgd import Phase, train_epochs

        model.load_shared(message.parameters)
        local = model.shared_parameters.clone()  # w_i
        made = 0

        def pull_back() -> None:
            local.add_(model.shared_parameters - local, alpha=task.learning_rate * self.envelope)

        def add_distance(model: FlatModel) -> None:
            nonlocal made
            if made and made % self.personal_steps == 0:
                pull_back()
            made += 1
            model.shared_gradient.add_(model.shared_parameters - local, alpha=self.envelope)

        training = replace(task.training, steps_per_epoch=task.training.steps_per_epoch * self.personal_steps)
        trained = train_epochs(
            model,
            Repeated(data.train, self.personal_steps),
            replace(task, training=training),
            add_gradient=add_distance,
            phase=Phase(learning_rate=self.personal_rate),
        )
        pull_back()
        change = model.change_from(message.parameters)
        change[: len(local)] = to_numpy(local) - message.parameters[: len(local)]
        return Update(change, trained.metrics()), model.take_shared()

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        change = updates.mean()
        change[: context.shared_parameter_count] *= self.server_rate
        return server + change


@dataclass(frozen=True)
class Repeated:
    """Samples whose every mini-batch comes several times in a row."""

    samples: Samples
    times: int

    def __len__(self) -> int:
        return len(self.samples)

    def batches(
        self, batch_size: int, generator: Generator | None = None, last: LastBatch | None = None
    ) -> Iterator[Batch]:
        for batch in self.samples.batches(batch_size, generator, last):
            for _ in range(self.times):
                yield batch


METHOD = PFedMe
