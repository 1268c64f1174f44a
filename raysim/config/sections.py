"""The fixed sections of a run's config (training, schedule, evaluation, engine) and the conditions between options."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from raysim.config import total_epochs
from raysim.errors import ConfigError


@dataclass(frozen=True)
class Training:
    """Local training, the same loop for every method."""

    optimizer: Literal["sgd", "adam", "adamw"] = field(
        default="sgd", metadata={"help": "optimizer of a client's local training"}
    )
    learning_rate: float = field(
        default=0.05, metadata={"help": "step size of local training", "low": 0.0, "low_open": True}
    )
    momentum: float = field(
        default=0.0,
        metadata={"help": "momentum of sgd; adam and adamw have none", "low": 0.0, "high": 1.0, "high_open": True},
    )
    weight_decay: float = field(
        default=0.0,
        metadata={
            "help": "weight decay w: sgd and adam add w θ to the gradient, adamw shrinks θ by rate · w in each step",
            "low": 0.0,
        },
    )
    optimizer_state: Literal["fresh", "kept", "batch"] = field(
        default="fresh",
        metadata={
            "help": "momentum of sgd, moments of adam and adamw: fresh in every client task; kept by the client from "
            "one of its tasks to the next; or begun anew in every mini-batch"
        },
    )
    batch_size: int = field(default=32, metadata={"help": "training samples in a mini-batch", "low": 1})
    learning_rate_decay: float = field(
        default=1.0,
        metadata={"help": "factor on the learning rate after each round", "low": 0.0, "low_open": True, "high": 1.0},
    )
    precision: Literal["float32", "bf16", "auto"] = field(
        default="float32",
        metadata={
            "help": "arithmetic of local training: float32; bf16: bfloat16 under autocast, parameters in float32; "
            "auto: the faster of the two, timed once at the start"
        },
    )
    steps_per_epoch: int = field(
        default=0,
        metadata={
            "help": "mini-batches that count as one local epoch (FedRAD's iterations); 0: a full pass",
            "low": 0,
        },
    )
    freeze_batchnorm: bool = field(
        default=False,
        metadata={
            "help": "BatchNorm normalizes by its running statistics in training too and leaves them as they are, while "
            "its scale and shift are trained; meant for pretrained weights",
            "source": "the code of FedLD",
        },
    )


@dataclass(frozen=True)
class Schedule:
    """Who takes part in a round, and for how many local epochs."""

    rounds: int = field(default=20, metadata={"help": "communications between clients and server", "low": 1})
    local_epochs: int = field(
        default=2, metadata={"help": "local epochs between two communications (FedRAD's interval f)", "low": 1}
    )
    epochs: int = field(
        default=0,
        metadata={
            "help": "local epochs E of the whole run in the place of rounds: as many rounds as E holds whole "
            "local_epochs; what is left over is not trained, as in the paper. 0: rounds times local_epochs",
            "low": 0,
            "source": "FedRAD, section 3.1",
        },
    )
    intervals: Literal["method", "fixed", "random"] = field(
        default="method",
        metadata={
            "help": "epochs between communications: as the method asks, always local_epochs, or FedRAD's random ones",
            "source": "FedRAD, Algorithm 1",
        },
    )
    sampling_rate: float = field(
        default=1.0,
        metadata={
            "help": "share of the present clients that a round samples",
            "low": 0.0,
            "low_open": True,
            "high": 1.0,
        },
    )
    joins: tuple[int, ...] = field(
        default=(),
        metadata={
            "help": "clients that join one group after another, 3,2,3,2 say; empty: all from the start",
            "low": 1,
            "source": "FedRAD, Table 2",
        },
    )
    join_every: int = field(
        default=0,
        metadata={"help": "total local epochs between two groups of joins; 0 if there is no second", "low": 0},
    )


@dataclass(frozen=True)
class Evaluation:
    """How often, and on how much, models are judged."""

    every: int = field(default=1, metadata={"help": "rounds between two evaluations", "low": 1})
    auc: bool = field(
        default=False,
        metadata={"help": "also measure AUC (each class against the rest), and balanced accuracy and AUC per client"},
    )
    decompose_every: int = field(
        default=0,
        metadata={
            "help": "rounds between two loss decompositions, n² evaluations each, without merged steps; 0: never",
            "low": 0,
            "source": "FedLD, Eq. 2",
        },
    )
    batch_size: int = field(default=500, metadata={"help": "test samples in one forward pass", "low": 1})
    client_limit: int = field(
        default=1000,
        metadata={
            "help": "at most so many clients, spread evenly, are judged on their own test sets at one evaluation",
            "low": 1,
        },
    )


@dataclass(frozen=True)
class Engine:
    """Where a run happens and what it does about faults."""

    backend: Literal["ray", "inline"] = field(
        default="ray", metadata={"help": "Ray actors, or everything in this process", "placement": True}
    )
    actors: int = field(
        default=0, metadata={"help": "client actors; 0: as many as fit and are useful", "low": 0, "placement": True}
    )
    cpus_per_client: float = field(
        default=1.0,
        metadata={"help": "CPU cores that a client actor reserves", "low": 0.0, "placement": True},
    )
    gpus_per_client: float = field(
        default=0.0,
        metadata={"help": "GPUs of a client actor: 0, 1/k for a whole k, or whole", "low": 0.0, "placement": True},
    )
    gpu_memory_cap: bool = field(
        default=True,
        metadata={"help": "actors that share a GPU have no more than their share of its memory", "placement": True},
    )
    threads: int = field(default=1, metadata={"help": "torch threads of a visit; sums depend on it", "low": 1})
    block_size: int = field(
        default=0,
        metadata={
            "help": "clients in one remote call, a power of two, at least as many as are merged into one step; 0: from "
            "the numbers of participants and actors",
            "low": 0,
            "placement": True,
        },
    )
    merge_single_steps: bool = field(
        default=True,
        metadata={
            "help": "clients that take one step in a round as one batch, where method and model allow it (FedSGD)",
            "source": "McMahan et al. 2017, section 2",
        },
    )
    checkpoint_every: int = field(
        default=5, metadata={"help": "rounds between two checkpoints", "low": 1, "placement": True}
    )
    keep_checkpoints: int = field(
        default=2, metadata={"help": "newest checkpoints that are kept", "low": 1, "placement": True}
    )
    on_client_error: Literal["fail", "skip"] = field(
        default="fail", metadata={"help": "end the run at a client's error, or leave that client out of the round"}
    )
    visit_deadline: float = field(
        default=0.0,
        metadata={
            "help": "seconds after which a remote call that is not back is done again by another actor; 0: 20 times as "
            "long as the slowest call like it, and at least 300",
            "low": 0.0,
            "placement": True,
        },
    )
    task_attempts: int = field(
        default=4,
        metadata={
            "help": "end the run once a remote call has lost this many actors, which died or were late",
            "low": 1,
            "placement": True,
        },
    )
    actor_attempts: int = field(
        default=8,
        metadata={
            "help": "end the run once this many actors in a row of one place died before they were up",
            "low": 1,
            "placement": True,
        },
    )
    heartbeat_limit: float = field(
        default=60.0,
        metadata={
            "help": "seconds without a sign of life from the driver or from Ray after which the run ends; 0: no limit",
            "low": 0.0,
            "placement": True,
        },
    )
    profile: bool = field(
        default=False,
        metadata={
            "help": "record where a round's time goes: profile.csv, and trace.json for chrome://tracing or "
            "ui.perfetto.dev",
            "placement": True,
        },
    )
    dashboard: bool = field(default=True, metadata={"help": "start Ray's dashboard", "placement": True})
    address: str = field(
        default="local",
        metadata={"help": "Ray cluster: local (a new one), auto, ray://HOST:PORT or HOST:PORT", "placement": True},
    )


def cross_check(training: Training, schedule: Schedule, engine: Engine) -> None:
    """ConfigError for values that are each in range and contradict one another, or that no range can describe."""
    if training.optimizer != "sgd" and training.momentum != 0:
        raise ConfigError(
            f"training.momentum: {training.momentum} has no effect with training.optimizer {training.optimizer}. "
            "Set training.momentum to 0 or training.optimizer to sgd."
        )
    _check_optimizer_state(training, schedule)
    total_epochs.check(schedule)
    if len(schedule.joins) > 1 and schedule.join_every == 0:
        raise ConfigError(
            f"schedule.join_every: 0 with schedule.joins {list(schedule.joins)}, whose later groups would never join. "
            "Set schedule.join_every to the total local epochs between two of them, at least 1."
        )
    if len(schedule.joins) < 2 and schedule.join_every > 0:
        raise ConfigError(
            f"schedule.join_every: {schedule.join_every} has no effect without at least two groups in schedule.joins, "
            "3,2,3,2 say."
        )
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
            f"GPU could never be used. Nearest: {' and '.join(_neighbours(gpus))}."
        )
    if not re.fullmatch(r"local|auto|(ray://)?[^\s:/]+:\d{1,5}", engine.address):
        raise ConfigError(
            f"engine.address: {engine.address!r} is not allowed. Allowed: local, auto, ray://HOST:PORT or HOST:PORT."
        )


def _check_optimizer_state(training: Training, schedule: Schedule) -> None:
    state = training.optimizer_state
    if state == "batch" and training.optimizer == "sgd" and training.momentum != 0:
        raise ConfigError(
            f"training.momentum: {training.momentum} has no effect with training.optimizer_state batch. Set "
            "training.momentum to 0 and training.optimizer_state to fresh, or training.optimizer to adam or adamw."
        )
    if state != "fresh" and training.optimizer == "sgd" and training.momentum == 0:
        raise ConfigError(
            f"training.optimizer_state: {state} has no effect with training.optimizer sgd without momentum, which has "
            "no state. Set it to fresh, or training.optimizer to adam or adamw"
            f"{', or training.momentum above 0' if state == 'kept' else ''}."
        )
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


def _neighbours(gpus: float) -> list[str]:
    """The allowed numbers of GPUs below and above one that is not."""
    if gpus > 1:
        return [f"{math.floor(gpus)}", f"{math.ceil(gpus)}"]
    actors = math.floor(1 / gpus)
    return [f"1/{k} = {1 / k:.6g}" if k > 1 else "1" for k in (actors + 1, actors)]
