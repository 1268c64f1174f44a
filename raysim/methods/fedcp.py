"""FedCP: for every sample, a policy splits the features between the global and the client's own head."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from raysim.method import NOTHING, ClientTask, FlatModel, Loss, Message, Module, Tensor, Traits, Update, Vector
from raysim.methods._halves import Averaged
from raysim.workloads.federated_data import ClientData
from raysim.workloads.objective import CLASSIFICATION, Objective
from raysim.workloads.option_types import Help, NonNegative

if TYPE_CHECKING:
    from raysim.methods._conditional_policy import ConditionalClassifier

OWN = ("head.", "context")
"""Names of the parameters that stay with a client: its personal head, and the vector that is computed from it."""
GLOBAL_HEAD = "global_head."


@dataclass(frozen=True)
class FedCP(Averaged[Vector]):
    """FedCP: logits = global head(r ⊙ h) + personal head(s ⊙ h), with r + s = 1 from a policy network per sample.

    Source: Zhang et al. 2023, FedCP: separating feature information for personalized federated learning via
    conditional policy (KDD, arXiv 2307.01217), Algorithm 1, and the authors' code (PFLlib). The user's model is a body
    and a linear head; ``extend`` adds a global head and the policy (a linear layer h → 2h, LayerNorm, ReLU, softmax
    over pairs; raysim/methods/_conditional_policy.py), whose input is h ⊙ v/‖v‖ with v the sum over classes of the
    personal head's weights at the start of the task.

    A client task trains body, policy and personal head on CE(logits, y) + λ·MMD²(h, h_global); the global head stays
    as received, and h_global are the features of the body as it was received. MMD² has RBF kernels of four widths.

    What travels, averaged by p_k: the body, the policy, and for the global head (personal head + received global head)
    / 2, as in the authors' code. What stays: the personal head. A client is judged by the received body, policy and
    global head with its own personal head, as in the authors' code.

    Decided here:
    - The policy's softmax is the print's. The authors' code draws Gumbel noise (in evaluation too); ``noise gumbel``
      does so in training only, because a judged model must give the same answer twice.
    - In its first task (and where it is judged before) a client takes the global head as its personal one. In the
      authors' code all start with the initial head, the same thing for clients that are there from the start.
    - Before its first task v comes from the head it starts with (authors' code: random numbers).
    - BatchNorm's statistics travel with the body, as for every method here. The frozen body normalizes by the
      statistics of the batch, as the trained one does.
    - Where clients' tasks differ, both heads and the input layer stay with their client: its global head is then the
      running mean of its own. What travels is the rest of the body, and the policy.
    """

    discrepancy: Annotated[
        NonNegative,
        Help("weight λ of the MMD term between features of the trained and of the received body", "Zhang et al. 2023"),
    ] = 5.0
    noise: Annotated[
        Literal["none", "gumbel"],
        Help("the policy's softmax in training: plain (the print), or with Gumbel noise (authors' code)"),
    ] = "none"

    traits: ClassVar[Traits] = Traits(weighted_mean=True, personal=True, classification=True, head_of_body=True)

    def extend(self, module: Module) -> Module:
        from raysim.methods._conditional_policy import ConditionalClassifier

        return ConditionalClassifier(module, noise=self.noise == "gumbel")

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names

        return {name for name in all_names(module) if not name.startswith(OWN)}

    def init_client(self, model: FlatModel) -> Vector:
        return NOTHING  # yet: `deploy` takes the global head

    def deploy(self, model: FlatModel, message: Message, state: Vector) -> None:
        module = classifier(model)
        model.load_shared(message.parameters)
        if state.size:
            model.load_private(state)
        else:
            module.head.load_state_dict(module.global_head.state_dict())
        module.set_context()

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        import torch

        from raysim.training.local_sgd import train_epochs

        self.deploy(model, message, state)
        trained = train_epochs(
            model,
            data.train,
            task,
            self.loss(model, task.objective),
            trains=lambda name: not name.startswith(GLOBAL_HEAD),
        )
        module, whole = classifier(model), model.buffer.clone()
        with torch.no_grad():
            for own, received in zip(module.head.parameters(), module.global_head.parameters(), strict=True):
                received.add_(own).mul_(0.5)
        update, after = Update(model.change_from(message.parameters), trained.metrics()), model.take_private()
        model.buffer.copy_(whole)  # what the client has trained has the global head that it received
        return update, after

    def loss(self, model: FlatModel, objective: Objective = CLASSIFICATION) -> Loss:
        """CE + λ·MMD²(features, features of the body as it is now)."""
        from raysim.methods._conditional_policy import discrepancy
        from raysim.training.frozen_features import frozen_features

        received = frozen_features(classifier(model).body, evaluation=False) if self.discrepancy else None

        def value(module: Any, batch: Any) -> Tensor:
            features = module.body(batch.x)
            plain = objective.mean_loss(module.predict(features), batch.y)
            if received is None:
                return plain
            return plain + self.discrepancy * discrepancy(features, received(batch.x))

        return value


def classifier(model: FlatModel) -> ConditionalClassifier:
    """The module that ``extend`` made."""
    return cast("ConditionalClassifier", model.module)


METHOD = FedCP
