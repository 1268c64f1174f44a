"""A membership test: whether a client's training samples can be told from samples that were never trained on.

The attack of Yeom et al. 2018 (Privacy risk in machine learning, section 3) calls a sample a member where the model's
loss on it lies below a threshold. Over all thresholds that is summed up by the area under the ROC curve: the
probability that a member has a smaller loss than another sample, equal losses counted by half. 0.5: it tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raysim.config.run_config import with_sections
from raysim.errors import ResultsError
from raysim.workloads.metrics import area_under_curve

if TYPE_CHECKING:
    import torch

    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Samples
    from raysim.workloads.objective import Objective

BATCH = 500
DRAWS = 1000
"""Bootstrap samples of an interval."""


@dataclass(frozen=True)
class Membership:
    """The attack on one client's samples, by the models of a run and of a replay without the client."""

    client: int
    before: float
    """Area under the curve, of the run's model."""
    after: float
    """The same of the replay's."""
    low: float
    """Lower end of the interval of ``after`` less ``before`` (:func:`interval`)."""
    high: float
    """Upper end."""
    members: int
    """Training samples of the client."""
    others: int
    """Samples that no client has trained on: the client's own test samples or, where it has none, the common ones."""

    def plain(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return asdict(self)

    def text(self) -> str:
        """The line that is printed."""
        return (
            f"membership of client {self.client}'s {self.members} training samples beside {self.others} others: "
            f"AUC {self.before:.3f} by the run's model, {self.after:.3f} by the replay's "
            f"({self.after - self.before:+.3f} [{self.low:+.3f}, {self.high:+.3f}])"
        )


def membership(clients: Sequence[int], run: tuple[RunConfig, Path], replay: tuple[RunConfig, Path]) -> list[Membership]:
    """Attack clients' samples by the global models of a run and of its replay, on the CPU.

    Args:
        run: its settings and folder.
        replay: the same of the replay.

    Raises:
        ResultsError: there are no other samples to compare with, or the loss is none of single samples.
    """
    from raysim.client_side.worker import Worker
    from raysim.engine.load_federation import load_federation
    from raysim.results.load_model import model_of
    from raysim.workloads.parallel_map import Sequential

    config = with_sections(run[0], engine=replace(run[0].engine, gpus_per_client=0.0))
    worker = Worker(config, load_federation(config, Sequential()))
    models = [model_of(own, folder) for own, folder in (run, replay)]
    found = []
    for client in clients:
        data, size = worker.data(client), worker.federation.global_test_size
        others = data.test if len(data.test) or not size else worker.global_test(0, size)
        if not len(others):
            raise ResultsError(
                f"--membership: there is no sample that client {client} has not trained on to compare with"
            )
        own = [losses(model, data.train, worker.objective) for model in models]
        other = [losses(model, others, worker.objective) for model in models]
        before, after = map(area, own, other)
        found.append(Membership(client, before, after, *interval(own, other), len(data.train), len(others)))
    return found


def losses(model: torch.nn.Module, samples: Samples, objective: Objective) -> NDArray[np.float64]:
    """The model's loss on every sample [n], in evaluation mode."""
    import torch

    def of_batches() -> Iterator[Any]:
        for batch in samples.batches(BATCH):
            found = objective.figures(model(batch.x), batch.y)["loss"].double()
            if not found.ndim:
                raise ResultsError(
                    "--membership: the loss that was given is a mean, and there is none of a sample alone"
                )
            yield found.reshape(len(batch), -1).mean(1).numpy()

    with torch.inference_mode():
        return np.concatenate([*of_batches()])


def area(members: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """The share of pairs of a member and another sample in which the member has the smaller loss, ties by half."""
    return area_under_curve(-np.concatenate([members, others]), np.arange(len(members) + len(others)) < len(members))


def interval(members: Sequence[NDArray[np.float64]], others: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """The 95 % interval of the difference of two models' areas, by a bootstrap over samples that both models share.

    Args:
        members: losses of the members by the first and the second model.
        others: the same of the other samples.
    """
    generator, differences = np.random.default_rng(0), []
    for _ in range(DRAWS):
        inside = generator.integers(len(members[0]), size=len(members[0]))
        outside = generator.integers(len(others[0]), size=len(others[0]))
        first, second = (area(own[inside], other[outside]) for own, other in zip(members, others, strict=True))
        differences.append(second - first)
    low, high = np.quantile(differences, (0.025, 0.975)).tolist()
    return low, high
