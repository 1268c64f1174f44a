"""FedSAM: every local step takes its gradient where the loss is higher, so that clients end in flat minima.

    python examples/fedsam.py --rounds 5                                    # this file alone
    python -m raysim.launch --method examples.fedsam:FedSAM --rounds 5      # the same from the folder above

docs/cookbook.md explains it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim import ClientTask, Context, GlobalModel, Message, Traits, Update, Updates, local_sgd
from raysim.workloads.option_types import Help, Positive

if TYPE_CHECKING:
    from raysim.flat_model import FlatModel
    from raysim.workloads.federated_data import ClientData


@dataclass(frozen=True)
class FedSAM(GlobalModel):
    """FedSAM: federated averaging whose clients minimize the worst loss within a distance of ρ.

    Source: Qu et al. 2022, Generalized federated learning via sharpness aware minimization (ICML; arXiv 2206.02618),
    FedSAM without momentum. A local step on a mini-batch D, and the server's step over the cohort S, are

        w ← w − η ∇f(w + ρ ∇f(w; D) / ‖∇f(w; D)‖; D),    x ← x + (1/|S|) Σ_{i∈S} (w_i − x).

    Departures: the server's rate is 1. The norm is over all parameters; a gradient of 0 shifts nothing. The optimizer
    of ``training`` makes the step. BatchNorm's statistics are those of the passes at w, and averaged.
    """

    radius: Annotated[Positive, Help("distance ρ to the point at which gradients are taken", "chosen here")] = 0.05

    traits: ClassVar[Traits] = Traits(weighted_mean=True, plain_mean=True)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: None, task: ClientTask
    ) -> tuple[Update, None]:
        """Local epochs whose gradients are taken a distance of ρ uphill."""

        def climb(model: FlatModel) -> None:
            norm = model.gradient.norm().clamp_min(1e-12)
            model.parameters.add_(model.gradient / norm, alpha=self.radius)

        model.load_shared(message.parameters)
        trained = local_sgd.train_epochs(model, data.train, task, gradient_at=climb)
        return Update(model.change_from(message.parameters), trained.metrics()), None

    def aggregate(self, server: NDArray[np.float32], updates: Updates, context: Context) -> NDArray[np.float32]:
        """The plain mean of the clients' models."""
        return server + updates.mean()


if __name__ == "__main__":
    from raysim.launch import main

    sys.exit(main(["--method", "__main__:FedSAM", *sys.argv[1:]]))
