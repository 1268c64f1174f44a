"""Data that drift: from a round or a virtual time on, labels or features of some clients are others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from raysim import schedule, seeds
from raysim.errors import ConfigError
from raysim.workloads.federated_data import ChangedSamples, ClientData, Samples, distinct_input_specs, objective_of

if TYPE_CHECKING:
    import torch

    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Federation


@dataclass(frozen=True)
class Moment:
    """The round and the virtual time of a client task or an evaluation, on which drifting data depend."""

    round: int = 0
    """Counted from 1."""
    seconds: float = 0.0
    """Virtual seconds at which the client task begins, or the server step that is judged; 0 without virtual time."""


class Drift:
    """Which clients' data change, when and how: it follows from settings and seed, so every process knows it."""

    def __init__(self, config: RunConfig, federation: Federation) -> None:
        self._events, self._seed, self._federation = config.events, config.seed, federation
        self._clients: set[int] = set()
        if config.events.drift != "none":
            draw = seeds.numpy_generator(config.seed, "events drift")
            self._clients.update(schedule.participants(federation.clients, config.events.drift_share, draw).tolist())

    def of_client(self, data: ClientData, moment: Moment) -> ClientData:
        """A client's data as they are then."""
        if data.client not in self._clients or not self._over(moment):
            return data
        train, test, validation = (
            self._changed(samples, data.client) for samples in (data.train, data.test, data.validation)
        )
        return replace(data, train=train, test=test, validation=validation)

    def of_test(self, samples: Samples, moment: Moment) -> Samples:
        """The common test set as it is then; it changes only if all clients' data do."""
        everyone = bool(self._clients) and self._events.drift_share == 1
        return self._changed(samples, 0) if everyone and self._over(moment) else samples

    def _over(self, moment: Moment) -> bool:
        """Whether the data that change have changed by then."""
        if self._events.drift_at:
            return moment.seconds >= self._events.drift_at
        return moment.round >= self._events.drift_round

    def _changed(self, samples: Samples, client: int) -> Samples:
        if self._events.drift == "features":
            return ChangedSamples(samples, lambda batch: replace(batch, x=batch.x * self._events.drift_factor))
        labels = next_labels(self._federation.input_spec(client).classes, self._seed)
        return ChangedSamples(samples, lambda batch: replace(batch, y=labels.to(batch.y.device)[batch.y]))


def next_labels(classes: int, seed: int) -> torch.Tensor:
    """The label [C] that each class takes: all classes in one ring of random order, so that none keeps its own."""
    import torch

    ring = seeds.numpy_generator(seed, "events labels").permutation(classes)
    labels = torch.empty(classes, dtype=torch.int64)
    labels[torch.from_numpy(ring)] = torch.from_numpy(ring).roll(-1)
    return labels


def check_drift(config: RunConfig, federation: Federation) -> None:
    """Refuse a drift that this data cannot have.

    Raises:
        ConfigError: it is graphs, has labels that are no classes or inputs that are no numbers, or the run ends before.
    """
    events = config.events
    if events.drift == "none":
        return
    tasks = distinct_input_specs(federation)
    what = f"events.drift: {events.drift} is not possible with {federation.name}, "
    if any(task.kind != "array" for task in tasks):
        raise ConfigError(f"{what}whose clients have graphs. Set events.drift to none, or take arrays such as images.")
    if events.drift == "labels" and objective_of(federation).kind != "classification":
        raise ConfigError(f"{what}whose labels are no classes. Set events.drift to features or none.")
    whole = getattr(federation, "whole_numbers", False)
    if events.drift == "features" and (whole or any(task.vocabulary or task.categories for task in tasks)):
        raise ConfigError(f"{what}whose inputs are whole numbers (tokens, categories). Set events.drift to labels.")
    rounds = len(schedule.planned_intervals(config))
    if events.drift_round > rounds:
        raise ConfigError(
            f"events.drift_round: {events.drift_round} is after the last round of {rounds}. Lower it, or raise "
            "schedule.rounds."
        )


def check_drift_time(config: RunConfig, end: float) -> None:
    """ConfigError for a drift after the last server step, which is at ``end`` virtual seconds."""
    if config.events.drift_at > end:
        raise ConfigError(
            f"events.drift_at: {config.events.drift_at:g} is after the last server step, at {end:.6g} virtual seconds. "
            "Lower it, or raise schedule.rounds."
        )
