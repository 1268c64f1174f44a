"""Per-FedAvg: a global model that is good after one more step of gradient descent on a client's own data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from raysim.method import ClientTask, FlatModel, Message, Traits, Update, Vector
from raysim.methods._halves import PersonalModel
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, OnlyWith, Positive


@dataclass(frozen=True)
class PerFedAvg(PersonalModel):
    """Per-FedAvg: FedAvg on F_i(w) = f_i(w − α ∇f_i(w)), the loss after a step of the client's own (MAML).

    Source: Fallah et al. 2020, Personalized federated learning with theoretical guarantees: a model-agnostic
    meta-learning approach (NeurIPS; arXiv 2002.07948), Algorithm 1 and Section 5. With independent mini-batches D, D'
    and D'' a step is w ← w − β g, where w̃ = w − α ∇f_i(w; D), v = ∇f_i(w̃; D') and

        fo: g = v;    hf: g = v − α (∇f_i(w + δ v; D'') − ∇f_i(w − δ v; D'')) / (2 δ).

    Decided here:
    - β and the optimizer are those of ``training``; the mean is by samples, where the print has equal clients.
    - A client is judged by w − α ∇f_i(w), w as its last task received it and the gradient over all its training
      samples: only a client task may look at data. Before its first task it is judged by the global model.
    - BatchNorm's statistics move in every forward pass, and are averaged.
    """

    variant: Annotated[
        Literal["fo", "hf"], Help("fo leaves the Hessian out; hf takes its product by two gradients", "Section 5")
    ] = "fo"
    adaptation_rate: Annotated[Positive, Help("step α of a client's own", "Fallah et al. 2020, Section 5")] = 0.01
    difference: Annotated[Positive, Help("δ of the Hessian's product"), OnlyWith("method.variant", "hf")] = 0.001

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True, judged_apart=True, same_task=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.gradients import batch_gradient, gradient_sum
        from raysim.training.local_sgd import endless, train_epochs

        model.load_shared(message.parameters)
        training, rate = task.training, self.adaptation_rate
        second, third = (
            endless(data.train, training, task.generator(f"shuffle {name}")) for name in ("second", "third")
        )

        def meta_gradient(model: FlatModel) -> None:
            """In the place of the gradient on D."""
            start = model.parameters.clone()
            model.parameters.sub_(model.gradient, alpha=rate)
            total = batch_gradient(model, next(second), task)
            if self.variant == "hf":
                batch, step = next(third), self.difference * total
                model.parameters.copy_(start + step)
                ahead = batch_gradient(model, batch, task)
                model.parameters.copy_(start - step)
                total = total - (ahead - batch_gradient(model, batch, task)) * (rate / (2 * self.difference))
            model.parameters.copy_(start)
            model.gradient.copy_(total)

        trained = train_epochs(model, data.train, task, add_gradient=meta_gradient)
        update = Update(model.change_from(message.parameters), trained.metrics())
        model.load_shared(message.parameters)
        model.parameters.sub_(gradient_sum(model, data.train, task), alpha=rate / len(data.train))
        return update, model.take_shared()


METHOD = PerFedAvg
