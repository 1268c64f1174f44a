"""The columns that a run's table of rounds will have, known before the first round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregators.loss_decomposition import decompose
from raysim.engine import schedule
from raysim.engine.evaluation import SPREAD, TUNED
from raysim.wrappers.attack import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from raysim.config.run_config import RunConfig
    from raysim.engine.worker import Worker
    from workloads.objective import Objective


def measurable(worker: Worker) -> tuple[str, ...]:
    """The columns that ``evaluation.measure`` may name: all but the round's number and times, which no two runs share.

    A method's own are those that it declares (``Traits.reports``). A test holds this list against the tables of runs.
    """
    return tuple(dict.fromkeys(_columns(worker)))


def is_share(column: str, objective: Objective) -> bool:
    """Whether all values of a column lie between 0 and 1; not known of a user's own metrics."""
    return column not in objective.metrics and ("accuracy" in column or column in ("auc", SUCCESS))


def _columns(worker: Worker) -> Iterator[str]:
    config, federation, objective = worker.config, worker.federation, worker.objective
    yield from objective.columns
    yield from ("train_loss", "participants", "local_epochs", "epochs_total", "bytes_down", "bytes_up")
    yield from (SUCCESS,) * (config.attack.kind == "backdoor")
    yield from ("auc",) * config.evaluation.auc
    measures = ("accuracy", "loss") if objective.accurate else ("loss",)
    if len(worker.data(0).validation):
        yield f"validation_{measures[0]}"
    if schedule.trainable(config, federation.clients) < federation.clients:
        yield from (f"unseen_{name}" for name in measures)
    if objective.accurate:
        yield from SPREAD
    if config.evaluation.fine_tune:
        yield from (f"{TUNED}{name}" for name in ("loss", *(SPREAD if objective.accurate else ())))
    if config.evaluation.decompose_every:
        yield from decompose(np.ones(1), np.ones((1, 1)), np.ones(1))
    if config.devices.on:
        yield from ("virtual_seconds", "joules", "clients_lost", "clients_late", "staleness")
    yield from _of_method(config)


def _of_method(config: RunConfig) -> Iterator[str]:
    yield from config.method.traits.reports
    if config.privacy.counted:
        yield from ("epsilon", "noise_multiplier")
    if config.privacy.clip_quantile is not None:
        yield "clip_bound"
