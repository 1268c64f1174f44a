"""How models are judged in a run: by its objective, and by whether its attack succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raysim.config.conditions import own_models
from raysim.method import Module
from raysim.workloads.federated_data import Federation, Samples, distinct_input_specs, objective_of
from raysim.workloads.metrics import EvaluationSums
from raysim.workloads.objective import Objective
from raysim.wrappers.attack import attacker_of, malicious
from raysim.wrappers.attacks._attacker import Attacker

if TYPE_CHECKING:
    from raysim.config.run_config import RunConfig


@dataclass(frozen=True)
class Judging:
    """The figures of a model after it was tried on test samples."""

    objective: Objective
    """The data's own, and figures of wrappers on the same samples."""
    attacker: Attacker

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all figures."""
        return tuple(dict.fromkeys((*self.objective.columns, *self.attacker.columns)))

    def further(self, module: Module, samples: Samples, batch_size: int, classes: int) -> Mapping[str, EvaluationSums]:
        """Evaluations of changed samples by the name of a column; their accuracy is the column's value."""
        return self.attacker.further(module, samples, batch_size, classes)


def judging(config: RunConfig, federation: Federation) -> Judging:
    """How the models of a run on these data are judged."""
    attacker = attacker_of(config.attack).fitted(federation)
    return Judging(attacker.objective(objective_of(federation)), attacker)


def measures_auc(config: RunConfig, federation: Federation) -> bool:
    """Whether a run on these data measures the AUC: as it is told to, else where every client tells two classes apart.

    With more classes the mean of each one's AUC against the rest is one choice of several, so that it is asked for.
    """
    if isinstance(config.evaluation.auc, bool):
        return config.evaluation.auc
    two = all(task.classes == 2 for task in distinct_input_specs(federation))
    return two and objective_of(federation).kind == "classification"


def uncounted(config: RunConfig, clients: int) -> frozenset[int]:
    """Malicious clients that are in no mean over clients, as each has a model of its own.

    That model is trained on flipped labels, say, and concerns no other client: an attack is measured by what becomes of
    the others.

    Args:
        config: the run's.
        clients: how many take part.
    """
    if not (config.attack.on and own_models(config)):
        return frozenset()
    return malicious(config.attack, config.seed, clients)


def further_columns(config: RunConfig) -> tuple[str, ...]:
    """Columns that the run's wrappers add to figures of models."""
    return attacker_of(config.attack).columns
