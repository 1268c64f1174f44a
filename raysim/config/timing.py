"""The sections of virtual time: what devices are like, when the server takes a step, and what happens to clients."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from raysim.config.kind_files import kind_class, kind_object
from raysim.errors import ConfigError
from raysim.workloads.option_types import (
    Gt,
    Help,
    NonNegative,
    NonNegativeInt,
    OnlyWith,
    Positive,
    PositiveInt,
    PositiveShare,
    Share,
)

if TYPE_CHECKING:
    from raysim.config.sections import Evaluation, Training


_TIMED = OnlyWith("devices.preset")


@dataclass(frozen=True)
class Devices:
    """The clients' devices, in virtual time: how fast they compute and communicate, when they are there."""

    preset: Annotated[
        Literal["none", "uniform", "classes", "phones", "day", "trace"],
        Help(
            "how devices differ: none: no virtual time; uniform: all alike; classes: a third each at 1, 2 and 5 times "
            "the seconds; phones: log-normal speeds and bandwidths; day: phones that are there while they charge at "
            "night; trace: a row for each client in devices.trace"
        ),
    ] = "none"
    trace: Annotated[str, Help("CSV or JSON file of profiles (docs/time.md)"), OnlyWith("devices.preset", "trace")] = ""
    seconds_per_sample: Annotated[
        Positive, Help("virtual seconds of local training for a sample in an epoch; of phones the median"), _TIMED
    ] = 0.01
    bandwidth_down: Annotated[Positive, Help("bandwidth to a client in Mbit/s; of phones the median"), _TIMED] = 20.0
    bandwidth_up: Annotated[Positive, Help("bandwidth from a client in Mbit/s; of phones the median"), _TIMED] = 5.0
    latency: Annotated[NonNegative, Help("virtual seconds that a message is under way beside its bytes"), _TIMED] = 0.05
    drop_probability: Annotated[Share, Help("probability that a client task ends without an update"), _TIMED] = 0.0
    watts: Annotated[NonNegative, Help("power of a device that trains or communicates"), _TIMED] = 3.0
    spread: Annotated[
        NonNegative,
        Help("standard deviation of the logarithm of the phones' speeds and bandwidths"),
        OnlyWith("devices.preset", "phones", "day"),
    ] = 0.5

    @property
    def on(self) -> bool:
        """Whether the run has virtual time."""
        return self.preset != "none"


MODES = ("sync", "deadline", "quorum", "over-select", "async", "buffered")
"""The timing modes, each with its file in raysim/virtual_time/rules."""
_RULES = {mode: kind_class("virtual_time.rules", mode) for mode in MODES}
if TYPE_CHECKING:
    Mode = str
else:
    Mode = Literal[MODES]


def _read(option: str) -> OnlyWith:
    """The note on an option of the section: the modes that read it are those whose rule has a field of its name."""
    readers = [mode for mode, rule in _RULES.items() if any(field.name == option for field in fields(rule))]
    return OnlyWith("timing.mode", *readers)


_STALE = OnlyWith("timing.mode", *(mode for mode, rule in _RULES.items() if not rule.in_rounds)) | OnlyWith(
    "timing.late", "carry"
)
"""The note on the weights of stale updates, which come without rounds, or from late clients that are not dropped."""


@dataclass(frozen=True)
class Timing:
    """When the server takes a step in virtual time, and with which updates."""

    mode: Annotated[
        Mode,
        Help("; ".join(f"{mode}: {rule.when}" for mode, rule in _RULES.items())),
        OnlyWith("devices.preset", why="needs to know when clients are back, and nothing says it"),
    ] = MODES[0]
    deadline: Annotated[NonNegative, Help("virtual seconds that a round takes at most"), _read("deadline")] = 0.0
    late: Annotated[
        Literal["drop", "carry"],
        Help("clients that are late: drop: they are told to stop; carry: their updates count in the step after"),
        _read("late"),
    ] = "drop"
    quorum: Annotated[PositiveShare, Help("share of the cohort that a round waits for"), _read("quorum")] = 0.8
    over_select: Annotated[
        Annotated[float, Gt(1)],
        Help("cohort in sizes of the usual one", "Bonawitz et al. 2019, section 2.2"),
        _read("over_select"),
    ] = 1.3
    concurrency: Annotated[
        NonNegativeInt,
        Help("clients that train at a time; 0: as many as a round would sample"),
        _read("concurrency"),
    ] = 0
    buffer: Annotated[
        PositiveInt,
        Help("updates K of a server step", "FedBuff, Nguyen et al. 2022, 4.1"),
        _read("buffer"),
    ] = 10
    buffer_weights: Annotated[
        Literal["samples", "uniform"],
        Help(
            "weights of the K updates of a server step: by training samples, as in rounds, or 1/K each, as in print",
            "uniform in FedBuff, Nguyen et al. 2022, Algorithm 1",
        ),
        _read("buffer_weights"),
    ] = "samples"
    staleness: Annotated[
        Literal["polynomial", "hinge", "constant"],
        Help(
            "weight of an update that starts τ server steps back: (1 + τ)^−a; 1 up to τ = b, then 1 / (a (τ − b) + 1); "
            "or 1",
            "FedAsync, Xie et al. 2019, section 5.2",
        ),
        _STALE,
    ] = "polynomial"
    staleness_slope: Annotated[
        NonNegative,
        Help("a in the weight of stale updates", "FedAsync, section 5.2; FedBuff, 5"),
        _STALE,
        OnlyWith("timing.staleness", "polynomial", "hinge"),
    ] = 0.5
    staleness_delay: Annotated[
        NonNegativeInt,
        Help("b in the hinge of stale updates", "FedAsync, section 5.2"),
        _STALE,
        OnlyWith("timing.staleness", "hinge"),
    ] = 4
    mixing: Annotated[
        PositiveShare,
        Help("share α of the client's model in the server's next one", "FedAsync, Algorithm 1"),
        _read("mixing"),
    ] = 0.6

    @property
    def rule(self) -> Any:
        """The mode with its options (``raysim.virtual_time.rules._rule.TimingRule``)."""
        return kind_object("virtual_time.rules", self.mode, self)

    @property
    def stale(self) -> bool:
        """Whether a step may take updates that start from an earlier version of the server's state."""
        return bool(self.rule.stale)


_CLOCK = OnlyWith("devices.preset", why="needs a clock, and there is none")
_LEAVING = OnlyWith("events.leave", say=0.3)
_DRIFTING = OnlyWith("events.drift", "labels", "features")


@dataclass(frozen=True)
class Events:
    """Clients that leave and come back at given virtual times, and data that change in a given round or at a time."""

    leave: Annotated[
        Share,
        Help("share of the clients that leave, drawn from the seed; 0: none"),
        _CLOCK,
    ] = 0.0
    leave_at: Annotated[
        NonNegative,
        Help("virtual seconds after which they leave; 0: they come late"),
        _LEAVING,
    ] = 0.0
    back_at: Annotated[NonNegative, Help("virtual seconds after which they are back; 0: never"), _LEAVING] = 0.0
    drift: Annotated[
        Literal["none", "labels", "features"],
        Help(
            "how clients' own training and test data change: labels: each class takes the label of another; features: "
            "all numbers of an input are multiplied by events.drift_factor"
        ),
    ] = "none"
    drift_round: Annotated[
        NonNegativeInt,
        Help("first round whose client tasks and evaluation see the changed data"),
        _DRIFTING,
    ] = 0
    drift_at: Annotated[
        NonNegative,
        Help("virtual seconds from which on client tasks that begin and evaluation see the changed data, instead"),
        _DRIFTING,
        _CLOCK,
    ] = 0.0
    drift_share: Annotated[
        PositiveShare,
        Help("share of the clients whose data change, drawn from the seed; with 1 the common test set changes too"),
        _DRIFTING,
    ] = 1.0
    drift_factor: Annotated[
        Positive, Help("factor: below 1 images are darker"), OnlyWith("events.drift", "features")
    ] = 0.5


def check(timing: Timing, devices: Devices, training: Training, evaluation: Evaluation) -> None:
    """ConfigError for options of virtual time that contradict one another."""
    timing.rule.check()
    if devices.preset == "trace" and not devices.trace:
        raise ConfigError(
            "devices.trace: empty with devices.preset trace. Set it to a file of profiles (docs/time.md)."
        )
    if timing.stale and evaluation.decompose_every:
        raise ConfigError(
            f"evaluation.decompose_every: {evaluation.decompose_every} compares the models of one round, and with "
            f"timing.mode {timing.mode} a step takes updates of several. Set it to 0, or timing.mode to sync."
        )
    if training.optimizer_state == "kept" and not timing.rule.waits_for_all:
        raise ConfigError(
            f"training.optimizer_state: kept with timing.mode {timing.mode}: the moments of a client that was not in "
            "the last step belong to an older model. Set training.optimizer_state to fresh, or timing.mode to sync."
        )


def check_method(timing: Timing, name: str, traits: Any) -> None:
    """ConfigError for a mode whose steps take updates that the method cannot take, by its traits."""
    if timing.rule.equal_weights and not traits.weighted_mean:
        raise ConfigError(
            f"timing.buffer_weights: uniform is not possible with method {name}, whose server does more than take a "
            "mean of updates. Allowed: samples."
        )
    if not timing.stale or traits.stale == "any":
        return
    if traits.stale == "none":
        raise ConfigError(
            f"timing.mode: with {timing.mode} and timing.late {timing.late} a server step takes updates of clients "
            f"that started from earlier models, and method {name} does not say what becomes of them. Set timing.mode "
            "to sync, or takes_stale or needs_several in the method's traits (docs/time.md)."
        )
    if timing.rule.single:
        raise ConfigError(
            f"timing.mode: with {timing.rule.single} every server step takes one update, which is not possible with "
            f"method {name}, {traits.needs_several}. Set timing.mode to buffered, with timing.buffer 2 or more, or to "
            "sync."
        )


def check_events(events: Events) -> None:
    """ConfigError for events that contradict one another."""
    if events.leave and not events.leave_at and not events.back_at:
        raise ConfigError(
            "events.leave_at: 0 with events.back_at 0: these clients would never be there. Set events.leave_at to the "
            "virtual seconds after which they leave, or events.back_at to those after which they come."
        )
    if 0 < events.back_at <= events.leave_at:
        raise ConfigError(
            f"events.back_at: {events.back_at} is not after events.leave_at {events.leave_at}. Raise it, or set it to "
            "0 for clients that never come back."
        )
    if events.drift != "none" and not events.drift_round and not events.drift_at:
        raise ConfigError(
            f"events.drift_round: 0 with events.drift {events.drift}. Set it to the first round with changed data, or "
            "events.drift_at to the virtual seconds after which data change."
        )
    if events.drift_round and events.drift_at:
        raise ConfigError(
            f"events.drift_at: {events.drift_at} with events.drift_round {events.drift_round}: data change once. Leave "
            "one of them out."
        )
