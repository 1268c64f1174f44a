"""MOON: local features are drawn to those of the global model, and away from those of the client's last own one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from raysim.method import ClientTask, FlatModel, Message, Tensor, Traits, Update, Vector
from raysim.methods._halves import AveragedModel
from raysim.workloads.federated_data import Batch, ClientData
from raysim.workloads.option_types import Help, NonNegative, Positive


@dataclass(frozen=True)
class Moon(AveragedModel[Vector]):
    """MOON: FedAvg whose local loss is contrastive at the level of models, cross-entropy + μ ℓ_con.

    Source: Li, He and Song 2021, Model-contrastive federated learning (CVPR; arXiv 2103.16257), Eq. 3 and Algorithm 1.
    With z, z_glob and z_prev the features of a sample by the model in training, the received global model and the model
    that the client ended its last task with:

        ℓ_con = −log( exp(cos(z, z_glob)/τ) / (exp(cos(z, z_glob)/τ) + exp(cos(z, z_prev)/τ)) ).

    Decided here: z is what the model's head receives, without the paper's projection head of two layers. The two other
    models are in evaluation mode. Before a client's first task its last model is the initial one. The reported
    ``train_loss`` has both terms in it.
    """

    mu: Annotated[NonNegative, Help("weight μ of ℓ_con", "Li et al. 2021, Section 4.2: 5, 1 and 1 on three sets")] = 1.0
    temperature: Annotated[Positive, Help("temperature τ", "Li et al. 2021, Section 4.1")] = 0.5

    traits: ClassVar[Traits] = Traits(
        weighted_mean=True, classification=True, model_parts=("body.", "head."), head_of_body=True
    )

    def init_client(self, model: FlatModel) -> Vector:
        return model.take_shared()

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Vector, task: ClientTask
    ) -> tuple[Update, Vector]:
        from raysim.training.frozen_features import frozen_features
        from raysim.training.local_sgd import local_update

        module: Any = model.module
        model.load_shared(state)
        by_last = frozen_features(module.body)
        model.load_shared(message.parameters)
        by_global = frozen_features(module.body)

        def loss(module: Any, batch: Batch) -> Tensor:
            features = module.body(batch.x)
            contrast = contrast_loss(features, by_global(batch.x), by_last(batch.x), self.temperature)
            return task.objective.mean_loss(module.head(features), batch.y) + self.mu * contrast

        return local_update(model, data, message, task, loss), model.take_shared()


def contrast_loss(features: Tensor, by_global: Tensor, by_last: Tensor, temperature: float) -> Tensor:
    """The mean of ℓ_con over a mini-batch, from features [B, h] of the three models."""
    import torch
    from torch.nn.functional import cosine_similarity, cross_entropy

    logits = torch.stack([cosine_similarity(features, other) for other in (by_global, by_last)], dim=1)
    return cross_entropy(logits / temperature, torch.zeros(len(features), dtype=torch.int64, device=features.device))


METHOD = Moon
