"""The ε that a run has spent by each round, and the noise that a budget asks for: both known without any training.

It follows from who takes part in which round. A client's history with ``privacy.kind central`` is the sums of its
rounds, each over a cohort drawn of all present clients, of a fixed size or each with the same probability; in virtual
time, where devices decide who arrives, and where clients are drawn by their sizes, over all of them. With ``local`` it
is its own noised updates, and with ``dp-sgd`` the batches of its local training: nothing is hidden by other clients,
and the client that has spent most counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raysim.client_side.model_parts import NO_BATCH_NORM, mixes_samples
from raysim.config.privacy import NEIGHBORS
from raysim.config.privacy_conditions import neighbors
from raysim.errors import ConfigError
from raysim.training.private_gradient import poisson_sampling
from raysim.units import counted
from raysim.workloads.federated_data import distinct_input_specs
from raysim.workloads.models.classifier import has_batch_norm
from raysim.wrappers.accounting import History, Sums, calibrated, epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.engine.round_plan import Planner
    from raysim.flat_model import FlatModel
    from raysim.workloads.federated_data import Federation


class PrivacyBudget:
    """Histories of a run's clients, round by round.

    Args:
        found: the noise multiplier that was found when the run began; None: it is found now, if the config has none.
    """

    def __init__(self, config: RunConfig, planner: Planner, found: float | None = None) -> None:
        self._config, self._planner = config, planner
        self._round, self._counts = 0, Counter[tuple[float, int]]()
        """Up to this round: rounds by sizes of cohort and population; or tasks or epochs by client and its samples."""
        noise = found if config.privacy.noise_multiplier is None else config.privacy.noise_multiplier
        self.noise = self._calibrated() if noise is None else noise

    def _calibrated(self) -> float:
        histories = self.histories(rounds := len(self._planner.intervals))
        if not histories:
            raise ConfigError(
                f"privacy.epsilon: no client takes part in any of the {rounds} rounds, so that every noise spends "
                "nothing. Raise schedule.sampling_rate or schedule.rounds."
            )
        return calibrated(histories, self._config.privacy)

    def columns(self, number: int) -> Mapping[str, Any]:
        """The noise, ε of the client that has spent most by a round, and what that ε is about."""
        privacy = self._config.privacy
        if not self.noise:
            return {}
        spent = epsilon(self.histories(number), self.noise, privacy)
        return {"noise_multiplier": self.noise, "epsilon": spent, NEIGHBORS: neighbors(self._config)}

    def histories(self, number: int) -> set[History]:
        """The noisy sums taken by the end of a round, of each client or of a sample of each client."""
        if number < self._round:
            self._round = 0
            self._counts.clear()
        while self._round < number:
            self._round += 1
            self._count(self._round)
        kind, replaced = self._config.privacy.kind, self._config.schedule.sampler.neighbors == "replaced"
        if not self._counts:
            return set()
        if kind == "central":
            return {tuple(Sums(drawn, of, replaced, count) for (drawn, of), count in sorted(self._counts.items()))}
        if kind == "local":
            return {(Sums(1, 1, True, max(self._counts.values())),)}
        training = self._config.training
        plans = {
            (samples, epochs): poisson_sampling(samples, training) for (_, samples), epochs in self._counts.items()
        }
        return {(Sums(size, samples, False, epochs * steps),) for (samples, epochs), (size, steps) in plans.items()}

    def _count(self, number: int) -> None:
        if self._config.privacy.kind == "central":
            cohort, everyone = self._planner.plan(number).cohort, (1, 1)
            if not cohort.planned:
                return  # everybody is left out of it: there is no sum
            drawn = (cohort.size, cohort.present) if cohort.poisson_rate is None else (cohort.poisson_rate, 1)
            hidden = self._config.schedule.sampler.amplifies and not self._config.devices.on
            self._counts[drawn if hidden else everyone] += 1
            return
        for client, samples, epochs in self._planner.taken(number):
            self._counts[client, samples] += epochs if self._config.privacy.kind == "dp-sgd" else 1


def with_privacy(
    worker: Worker, planner: Planner, found: float | None, note: Callable[[str], None]
) -> tuple[Any, float | None]:
    """The worker's method for the driver, with its noise and what that spends; and the noise multiplier if searched.

    Args:
        found: what the run's checkpoints say was found. Another version of dp-accounting might find another.

    Raises:
        ConfigError: the model or the data do not allow what is asked for.
    """
    config, privacy = worker.config, worker.config.privacy
    if not privacy.on:
        return worker.method, None
    _check_model(config, worker.model(0))
    if privacy.counted:
        _check_copies(config, worker.federation)
    if privacy.kind == "dp-sgd":
        _check_samples(worker.federation)
    budget = PrivacyBudget(config, planner, found)
    method = replace(worker.method, noise=budget.noise, spent=budget.columns)
    about = f"at δ = {privacy.delta:g} ({neighbors(config)})"
    if privacy.epsilon is None:
        rounds = len(planner.intervals)
        spent = budget.columns(rounds).get("epsilon")
        if spent is not None:
            note(f"ε is {spent:.4g} after {counted(rounds, 'round')}, {about}")
        return method, None
    if found is None:
        note(f"privacy.noise_multiplier {budget.noise:.4g} gives ε ≤ {privacy.epsilon:g} {about}")
    else:
        note(f"privacy.noise_multiplier {budget.noise:.4g} was found when the run began")
    return method, budget.noise


def _check_model(config: RunConfig, model: FlatModel) -> None:
    kind, module = config.privacy.kind, model.module
    if kind == "dp-sgd":
        if has_batch_norm(module) and not config.training.freeze_batchnorm:
            raise mixes_samples()
        return
    for entry in model.entries:
        if entry.shared and not entry.parameter:
            raise ConfigError(
                f"privacy.kind: {kind} is not possible with a model that shares {entry.name}, which is no parameter: "
                f"noise could make a BatchNorm's variance negative. {NO_BATCH_NORM}, or method fedbn."
            )


def _check_copies(config: RunConfig, federation: Federation) -> None:
    """ε holds for one client, or one sample, only if no other client trains on the same."""
    kind = config.privacy.kind
    if getattr(federation, "fill", None) is not None:
        raise ConfigError(
            f"privacy.kind: {kind} with workload.samples_per_client: clients are filled up with copies of samples of "
            "all clients, so that one sample is in the training of several, and ε would be wrong. Leave "
            "workload.samples_per_client out, or set privacy.noise_multiplier to 0, which claims no ε."
        )
    partition = getattr(config.workload, "partition", "")
    owned = getattr(getattr(federation, "train", None), "indices", ())  # published splits are files of others
    if partition == "views" or len(np.unique(owned)) < len(owned):
        raise ConfigError(
            f"privacy.kind: {kind} with workload.partition {partition}, where several clients have the same sample, so "
            "that ε would be wrong. Set workload.partition to dirichlet or iid, or privacy.noise_multiplier to 0, "
            "which claims no ε."
        )


def _check_samples(federation: Federation) -> None:
    for task in distinct_input_specs(federation):
        if task.kind != "array":
            raise ConfigError(
                "privacy.kind: dp-sgd takes samples that are rows of an array, such as images, and these clients have "
                f"{task.kind}{'s' * (task.kind == 'graph')}. Set privacy.kind to central or local."
            )
