"""The fixed sections of a run's config (training, schedule, evaluation, engine) and the conditions between options."""

from __future__ import annotations

import importlib.util
import math
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from raysim.config import total_epochs
from raysim.config.options import refuse_if_set
from raysim.errors import ConfigError
from workloads.option_types import (
    Help,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    PositiveShare,
    ShareBelowOne,
)


@dataclass(frozen=True)
class Training:
    """Local training, the same loop for every method."""

    optimizer: Annotated[Literal["sgd", "adam", "adamw"], Help("optimizer of a client's local training")] = "sgd"
    learning_rate: Annotated[Positive, Help("step size of local training")] = 0.05
    momentum: Annotated[ShareBelowOne, Help("momentum of sgd; adam and adamw have none")] = 0.0
    weight_decay: Annotated[
        NonNegative,
        Help("weight decay w: sgd and adam add w θ to the gradient, adamw shrinks θ by rate · w in each step"),
    ] = 0.0
    optimizer_state: Annotated[
        Literal["fresh", "kept", "batch"],
        Help(
            "momentum of sgd, moments of adam and adamw: fresh in every client task; kept by the client from "
            "one of its tasks to the next; or begun anew in every mini-batch"
        ),
    ] = "fresh"
    batch_size: Annotated[PositiveInt, Help("training samples in a mini-batch")] = 32
    learning_rate_decay: Annotated[PositiveShare, Help("factor on the learning rate after each round")] = 1.0
    precision: Annotated[
        Literal["float32", "bf16", "auto"],
        Help(
            "arithmetic of local training: float32; bf16: bfloat16 under autocast, parameters in float32; "
            "auto: the faster of the two, timed once at the start"
        ),
    ] = "float32"
    steps_per_epoch: Annotated[
        NonNegativeInt, Help("mini-batches that count as one local epoch (FedRAD's iterations); 0: a full pass")
    ] = 0
    freeze_batchnorm: Annotated[
        bool,
        Help(
            "BatchNorm normalizes by its running statistics in training too and leaves them as they are, while "
            "its scale and shift are trained; meant for pretrained weights",
            "the code of FedLD",
        ),
    ] = False


@dataclass(frozen=True)
class Schedule:
    """Who takes part in a round, and for how many local epochs."""

    rounds: Annotated[PositiveInt, Help("communications between clients and server")] = 20
    local_epochs: Annotated[PositiveInt, Help("local epochs between two communications (FedRAD's interval f)")] = 2
    epochs: Annotated[
        NonNegativeInt,
        Help(
            "local epochs E of the whole run in the place of rounds: as many rounds as E holds whole "
            "local_epochs; what is left over is not trained, as in the paper. 0: rounds times local_epochs",
            "FedRAD, section 3.1",
        ),
    ] = 0
    intervals: Annotated[
        Literal["method", "fixed", "random"],
        Help(
            "epochs between communications: as the method asks, always local_epochs, or FedRAD's random ones",
            "FedRAD, Algorithm 1",
        ),
    ] = "method"
    sampling_rate: Annotated[
        PositiveShare,
        Help(
            "share of the present clients that a round samples; with schedule.sampling poisson of each the probability"
        ),
    ] = 1.0
    sampling: Annotated[
        Literal["fixed", "poisson"],
        Help(
            "a round's clients: fixed: sampling_rate of those present, at least one; poisson: each by itself with "
            "probability sampling_rate, so that a round may have none; what ε is about follows (docs/wrappers.md)"
        ),
    ] = "fixed"
    unseen_clients: Annotated[
        NonNegativeInt,
        Help(
            "the last N clients never take part; they are judged like the others, and the rounds table has "
            "unseen_accuracy, the mean over them (other columns of clients leave them out)",
            "Yuan et al. 2022, arXiv 2110.14216",
        ),
    ] = 0
    joins: Annotated[
        tuple[PositiveInt, ...],
        Help("clients that join one group after another, 3,2,3,2 say; empty: all from the start", "FedRAD, Table 2"),
    ] = ()
    join_every: Annotated[
        NonNegativeInt, Help("total local epochs between two groups of joins; 0 if there is no second")
    ] = 0


@dataclass(frozen=True)
class Evaluation:
    """How often, and on how much, models are judged."""

    every: Annotated[PositiveInt, Help("rounds between two evaluations")] = 1
    auc: Annotated[
        bool, Help("also measure AUC (each class against the rest), and balanced accuracy and AUC per client")
    ] = False
    decompose_every: Annotated[
        NonNegativeInt,
        Help(
            "rounds between two loss decompositions, n² evaluations each, without merged steps; 0: never",
            "FedLD, Eq. 2",
        ),
    ] = 0
    batch_size: Annotated[PositiveInt, Help("test samples in one forward pass")] = 500
    client_limit: Annotated[
        PositiveInt, Help("largest number of clients, spread evenly, that an evaluation judges on their own test sets")
    ] = 1000
    patience: Annotated[
        NonNegativeInt, Help("end the run after this many evaluations in a row without a better measure; 0: never")
    ] = 0
    stop_at: Annotated[
        float | None, Help("end the run once the measure is as good as this (0.9: 90 % accuracy); null: never")
    ] = None
    measure: Annotated[
        str,
        Help(
            "column of the table of rounds for patience and stop_at; less is better of a loss and of a column after a "
            "minus sign, -absolute_error say; empty: accuracy, or loss where there is none"
        ),
    ] = ""

    @property
    def ends_early(self) -> bool:
        """Whether the run may end before its last round."""
        return self.patience > 0 or self.stop_at is not None


@dataclass(frozen=True)
class Engine:
    """Where a run happens and what it does about faults."""

    backend: Annotated[Literal["ray", "inline"], Help("Ray actors, or everything in this process", placement=True)] = (
        "ray"
    )
    actors: Annotated[NonNegativeInt, Help("client actors; 0: as many as fit and are useful", placement=True)] = 0
    cpus_per_client: Annotated[NonNegative, Help("CPU cores that a client actor reserves", placement=True)] = 1.0
    gpus_per_client: Annotated[
        NonNegative, Help("GPUs of a client actor: 0, 1/k for a whole k, or whole", placement=True)
    ] = 0.0
    gpu_memory_cap: Annotated[
        bool, Help("actors that share a GPU have no more than their share of its memory", placement=True)
    ] = True
    threads: Annotated[PositiveInt, Help("torch threads of a client task; sums depend on it")] = 1
    block_size: Annotated[
        NonNegativeInt,
        Help(
            "clients in one remote call, a power of two, at least as many as are merged into one step; 0: from "
            "the numbers of participants and actors",
            placement=True,
        ),
    ] = 0
    merge_single_steps: Annotated[
        bool,
        Help(
            "clients that take one step in a round as one batch, where method and model allow it (FedSGD)",
            "McMahan et al. 2017, section 2",
        ),
    ] = True
    checkpoint_every: Annotated[PositiveInt, Help("rounds between two checkpoints", placement=True)] = 5
    keep_checkpoints: Annotated[PositiveInt, Help("newest checkpoints that are kept", placement=True)] = 2
    on_client_error: Annotated[
        Literal["fail", "skip"], Help("end the run at a client's error, or leave that client out of the round")
    ] = "fail"
    task_deadline: Annotated[
        NonNegative,
        Help(
            "seconds after which a remote call that is not back is done again by another actor; 0: 20 times as "
            "long as the slowest call like it, and at least 300",
            placement=True,
        ),
    ] = 0.0
    task_attempts: Annotated[
        PositiveInt,
        Help("end the run once a remote call has lost this many actors, which died or were late", placement=True),
    ] = 4
    actor_attempts: Annotated[
        PositiveInt,
        Help("end the run once this many actors in a row of one place died before they were up", placement=True),
    ] = 8
    heartbeat_limit: Annotated[
        NonNegative,
        Help(
            "seconds without a sign of life from the driver or from Ray after which the run ends; 0: no limit",
            placement=True,
        ),
    ] = 60.0
    profile: Annotated[
        bool,
        Help(
            "record where a round's time goes: profile.csv, and trace.json for chrome://tracing or ui.perfetto.dev",
            placement=True,
        ),
    ] = False
    dashboard: Annotated[bool, Help("start Ray's dashboard", placement=True)] = True
    tensorboard: Annotated[
        bool, Help("write curves for TensorBoard into the run's folder while it goes on", placement=True)
    ] = False
    address: Annotated[
        str, Help("Ray cluster: local (a new one), auto, ray://HOST:PORT or HOST:PORT", placement=True)
    ] = "local"


def cross_check(training: Training, schedule: Schedule, engine: Engine) -> None:
    """ConfigError for values that are each in range and contradict one another, or that no range can describe."""
    if training.optimizer != "sgd":
        advice = "Set training.momentum to 0 or training.optimizer to sgd."
        refuse_if_set(training, f"training.optimizer {training.optimizer}. {advice}", "momentum")
    _check_optimizer_state(training, schedule)
    if engine.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError(
            "engine.tensorboard: the package tensorboard is not installed. Install it with pip install tensorboard, or "
            "leave the option out."
        )
    total_epochs.check(schedule)
    if len(schedule.joins) > 1 and schedule.join_every == 0:
        raise ConfigError(
            f"schedule.join_every: 0 with schedule.joins {list(schedule.joins)}, whose later groups would never join. "
            "Set schedule.join_every to the total local epochs between two of them, at least 1."
        )
    if len(schedule.joins) < 2:
        refuse_if_set(schedule, "fewer than two groups in schedule.joins, 3,2,3,2 say.", "join_every")
    size = engine.block_size
    if size & (size - 1):
        below = 1 << (size.bit_length() - 1)
        raise ConfigError(
            f"engine.block_size: {size} is no power of two, and only such blocks can be added up where clients are "
            f"trained. Allowed: 0, 1, 2, 4, 8, …; nearest: {below} and {2 * below}."
        )
    gpus = engine.gpus_per_client
    if gpus != 0 and not _is_share(gpus):
        raise ConfigError(
            f"engine.gpus_per_client: {gpus} is neither 0, 1/k for a whole k, nor a whole number, so that a part of a "
            f"GPU could never be used. Nearest: {' and '.join(_neighbors(gpus))}."
        )
    if not re.fullmatch(r"local|auto|(ray://)?[^\s:/]+:\d{1,5}", engine.address):
        raise ConfigError(
            f"engine.address: {engine.address!r} is not allowed. Allowed: local, auto, ray://HOST:PORT or HOST:PORT."
        )


def _check_optimizer_state(training: Training, schedule: Schedule) -> None:
    state = training.optimizer_state
    if training.optimizer == "sgd" and state == "batch":
        advice = (
            "Set training.momentum to 0 and training.optimizer_state to fresh, or training.optimizer to adam or adamw."
        )
        refuse_if_set(training, f"training.optimizer_state batch. {advice}", "momentum")
    if training.optimizer == "sgd" and training.momentum == 0:
        more = ", or training.momentum above 0" if state == "kept" else ""
        advice = f"Set it to fresh, or training.optimizer to adam or adamw{more}."
        why = f"training.optimizer sgd without momentum, which has no state. {advice}"
        refuse_if_set(training, why, "optimizer_state")
    if state == "kept" and schedule.sampling_rate < 1:
        raise ConfigError(
            f"training.optimizer_state: kept with schedule.sampling_rate {schedule.sampling_rate}: the moments of a "
            "client that was not sampled belong to a model of many rounds ago. Set schedule.sampling_rate to 1, or "
            "training.optimizer_state to fresh."
        )


def _is_share(gpus: float) -> bool:
    if gpus >= 1:
        return float(gpus).is_integer()
    # Decimal fractions are cut: 0.333 is meant to be 1/3. 0.33 is not accepted, it would waste a hundredth of a GPU.
    return abs(gpus * round(1 / gpus) - 1) <= 2e-3


def _neighbors(gpus: float) -> list[str]:
    """The allowed numbers of GPUs below and above one that is not."""
    if gpus > 1:
        return [f"{math.floor(gpus)}", f"{math.ceil(gpus)}"]
    actors = math.floor(1 / gpus)
    return [f"1/{k} = {1 / k:.6g}" if k > 1 else "1" for k in (actors + 1, actors)]
