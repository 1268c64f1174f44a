"""How a method lets the engine train many clients at once: it yields its local training instead of calling it.

Under the decorator :func:`together`, ``train`` is written as a generator: everything up to its ``yield`` comes before
the local training, the ``yield`` stands for :func:`raysim.training.train_epochs`, and what follows comes after it, with
the trained values in the same ``model``:

    @together
    def train(self, model, data, message, kept, visit):
        model.load_shared(message.parameters)
        trained = yield LocalTraining(data.train)
        return Update(model.change_from(message.parameters), trained.metrics()), None

Called as usual it visits one client. With ``engine.vectorise`` the engine runs the halves client by client and, between
them, trains the clients of a group as one batched program (raysim/vectorised.py). Nothing here imports torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from raysim import registry
from raysim.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from raysim.method import Message, Update
    from raysim.parameters import FlatModel
    from raysim.training import Trained, Visit
    from workloads.data import ClientData, Samples

AddGradient: TypeAlias = "Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]"


@dataclass(frozen=True)
class LocalTraining:
    """A visit's local epochs on the cross-entropy, from the values that are in the model now."""

    samples: Samples
    add_gradient: AddGradient | None = None
    """``add_gradient(gradient, shared, start)``: adds the gradient of a penalty on the shared parameters to the
    gradient, in place; ``start`` is where they were before the first step. Each is [d] for one client or [n, d] for n
    of them, so it must act on every row alone and depend on nothing else but the method's options."""

    def run(self, model: FlatModel, visit: Visit) -> Trained:
        """Train one client."""
        from raysim.training import train_epochs

        add = self.add_gradient
        if add is None:
            return train_epochs(model, self.samples, visit)
        start = model.shared_parameters.clone()
        return train_epochs(
            model,
            self.samples,
            visit,
            add_gradient=lambda model: add(model.shared_gradient, model.shared_parameters, start),
        )


M = TypeVar("M")
K = TypeVar("K")
"""What a client keeps."""
Steps: TypeAlias = "Generator[LocalTraining, Trained, tuple[Update, K]]"


def together(
    steps: Callable[[M, FlatModel, ClientData, Message, K, Visit], Steps[K]],
) -> Callable[[M, FlatModel, ClientData, Message, K, Visit], tuple[Update, K]]:
    """Make the generator ``train`` of a method callable as the contract has it, and known to the engine as one."""

    @functools.wraps(steps)
    def train(self: M, model: FlatModel, data: ClientData, message: Message, kept: K, visit: Visit) -> tuple[Update, K]:
        running = steps(self, model, data, message, kept, visit)
        trained: Any = None  # the first one only starts it
        while True:
            try:
                request = running.send(trained)
            except StopIteration as finished:
                result: tuple[Update, K] = finished.value
                return result
            trained = request.run(model, visit)

    train.steps = steps  # type: ignore[attr-defined]
    return train


def steps_of(method: Any) -> Callable[..., Steps[Any]] | None:
    """The generator behind a method's ``train`` (a method or its class); None where it has none."""
    found: Callable[..., Steps[Any]] | None = getattr(method.train, "steps", None)
    return found


def check_method(method: Any, clients: int) -> None:
    """ConfigError if ``engine.vectorise`` (``clients``) is on and the method does not yield its local training."""
    if clients and steps_of(method) is None:
        able = [name for name in registry.known("method") if steps_of(registry.method_class(name)) is not None]
        raise ConfigError(
            f"engine.vectorise: {clients} with method {registry.method_name(method)}, whose clients can only be "
            f"trained one after another. Set engine.vectorise to 0, or choose one of: {', '.join(able)}."
        )
