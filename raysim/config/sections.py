"""The fixed sections of a run's config: training, schedule, evaluation, engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from raysim.config.schedule import Schedule as Schedule
from raysim.workloads.batch_bounds import LastBatch
from raysim.workloads.objective import Margin
from raysim.workloads.option_types import (
    Help,
    NonNegative,
    NonNegativeInt,
    OnlyWith,
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
    momentum: Annotated[
        ShareBelowOne, Help("momentum of sgd; adam and adamw have none"), OnlyWith("training.optimizer", "sgd")
    ] = 0.0
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
        OnlyWith("training.optimizer", "adam", "adamw", of=("batch",)),
        OnlyWith("training.optimizer", "adam", "adamw") | OnlyWith("training.momentum", say=0.9),
    ] = "fresh"
    batch_size: Annotated[PositiveInt, Help("training samples in a mini-batch")] = 32
    last_batch: Annotated[
        Literal["auto", "merge", "keep", "drop"],
        Help(
            "the samples that a pass leaves over behind its whole mini-batches: merge: fewer than merge_below of a "
            "mini-batch join the one before; keep: they are one of their own (a single sample joins); drop: they sit "
            "the pass out; auto: merge where BatchNorm normalizes by the mini-batch, else keep"
        ),
        OnlyWith("privacy.kind", "none", "central", "local", why="has nothing left over to act on"),
    ] = "auto"
    merge_below: Annotated[
        PositiveShare,
        Help("share of batch_size below which left-over samples join the mini-batch before"),
        OnlyWith("training.last_batch", "auto", "merge"),
        OnlyWith("privacy.kind", "none", "central", "local", why="has nothing left over to act on"),
    ] = 0.25
    learning_rate_decay: Annotated[PositiveShare, Help("factor on the learning rate after each round")] = 1.0
    margin: Annotated[
        NonNegative,
        Help(
            "weight of FedLD's margin control in the loss of any method: it makes large logits cost; 0: none",
            "Zeng et al. 2024, Eq. 3; 0.01 to 0.1 there",
        ),
    ] = 0.0
    margin_kind: Annotated[
        Margin,
        Help(
            "what training.margin weighs: l2: mean of |z|² over a batch's logits z; log: mean of log(1 + |z|²); "
            "softmax_log: log(1 + |softmax(z)|²) of the whole batch",
            "Zeng et al. 2024, Eq. 3, and the authors' code",
        ),
        OnlyWith("training.margin", say=0.03),
    ] = "l2"
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
    batchnorm_statistics: Annotated[
        Literal["averaged", "local"],
        Help(
            "running means and variances of BatchNorm: averaged: with all else that the method shares; local: each "
            "client keeps its own, and is judged with them on its own test set, while scale and shift are averaged",
            "SiloBN: Andreux et al. 2020, arXiv 2008.07424",
            late=True,
        ),
        OnlyWith("training.freeze_batchnorm", False),
    ] = "averaged"

    @property
    def last(self) -> LastBatch:
        """The rule for the last mini-batch of a pass; before a run has decided what ``auto`` is, that of ``keep``."""
        return LastBatch("keep" if self.last_batch == "auto" else self.last_batch, self.merge_below)

    def rate_in(self, round: int) -> float:
        """The learning rate of a round, counted from 1."""
        return self.learning_rate * self.learning_rate_decay ** (round - 1)


@dataclass(frozen=True)
class Evaluation:
    """How often, and on how much, models are judged."""

    every: Annotated[PositiveInt, Help("rounds between two evaluations")] = 1
    auc: Annotated[
        Literal["auto"] | bool,
        Help(
            "also measure AUC (each class against the rest), and balanced accuracy and AUC per client; auto: where "
            "there are two classes"
        ),
    ] = "auto"
    decompose_every: Annotated[
        NonNegativeInt,
        Help(
            "rounds between two loss decompositions, n² evaluations each, without merged steps; 0: never",
            "FedLD, Eq. 2",
        ),
    ] = 0
    fine_tune: Annotated[
        NonNegativeInt,
        Help(
            "epochs for which each client trains the global model on its own training data before it is judged a "
            "second time, on its own test set (columns tuned_...); 0: never",
            "Yu et al. 2020, arXiv 2002.04758",
        ),
    ] = 0
    each_client: Annotated[
        bool,
        Help(
            "keep the accuracy of every judged client in the rounds table (client_accuracies), for measures that pair "
            "runs client by client, as local_gain does"
        ),
    ] = False
    batch_size: Annotated[PositiveInt, Help("test samples in one forward pass")] = 500
    client_limit: Annotated[
        PositiveInt,
        Help(
            "largest number of clients, spread evenly over those with test samples, that an evaluation judges by these"
        ),
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
            "column of the table of rounds for patience and stop_at; less is better of a loss, of absolute_error and "
            "of a column after a minus sign, -drift say; empty: accuracy, or loss where there is none"
        ),
        OnlyWith("evaluation.patience", say=3) | OnlyWith("evaluation.stop_at", say=0.9),
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
    portable: Annotated[
        bool,
        Help(
            "caps the instruction sets of torch, oneDNN, MKL, numpy and OpenBLAS at AVX2 in every process of the "
            "run, so that x86 processors can give the same bits"
        ),
        OnlyWith("engine.gpus_per_client", 0.0, why="cannot be kept"),
        OnlyWith("training.precision", "float32", why="cannot be kept"),
        OnlyWith("engine.address", "local", why="cannot be kept"),
    ] = False
    merge_single_steps: Annotated[
        bool,
        Help(
            "clients that take one step in a round as one batch, where method and model allow it (FedSGD)",
            "McMahan et al. 2017, section 2",
        ),
    ] = True
    repeat_check: Annotated[
        Literal["given", "always", "never"],
        Help(
            "train one client twice before the first round, and refuse the run where a bit differs: where a model, a "
            "loss or metrics were given in Python, always or never",
            placement=True,
        ),
    ] = "given"
    proof: Annotated[
        Literal["rounds", "clients", "none"],
        Help(
            "proof.jsonl, a chain of digests that python -m raysim.verify checks the run by: of every round; of every "
            "client's message and update too; or none",
            placement=True,
        ),
    ] = "rounds"
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
    ] = 50.0
    profile: Annotated[
        bool,
        Help(
            "record where a round's time goes: profile.csv, and trace.json for chrome://tracing or ui.perfetto.dev",
            placement=True,
        ),
    ] = False
    dashboard: Annotated[bool, Help("start Ray's dashboard", placement=True)] = True
    observer: Annotated[
        tuple[str, ...],
        Help(
            "who is told of rounds as they happen: tensorboard, mlflow, wandb, trackio (docs/running.md, Trackers), or "
            "package.module:Class of your own; --observer may stand there several times",
            placement=True,
        ),
    ] = ()
    experiment: Annotated[
        str,
        Help(
            "name under which trackers file the run (experiment of MLflow, project of W&B and trackio); empty: the "
            "title of its study, else the name of the folder that holds the run's",
            placement=True,
        ),
        OnlyWith("engine.observer", say="mlflow"),
    ] = ""
    address: Annotated[
        str, Help("Ray cluster: local (a new one), auto, ray://HOST:PORT or HOST:PORT", placement=True)
    ] = "local"
