"""The section of what happens to clients during a run: they leave and come back, and their data drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from raysim.config.options import refuse_if_set
from raysim.errors import ConfigError
from workloads.option_types import Help, NonNegative, NonNegativeInt, Positive, PositiveShare, Share

if TYPE_CHECKING:
    from raysim.config.timing import Devices


@dataclass(frozen=True)
class Events:
    """Clients that leave and come back at given virtual times, and data that change in a given round or at a time."""

    leave: Annotated[Share, Help("share of the clients that leave, drawn from the seed; 0: none")] = 0.0
    leave_at: Annotated[NonNegative, Help("virtual seconds after which they leave; 0: they come late")] = 0.0
    back_at: Annotated[NonNegative, Help("virtual seconds after which they are back; 0: never")] = 0.0
    drift: Annotated[
        Literal["none", "labels", "features"],
        Help(
            "how clients' own training and test data change: labels: each class takes the label of another; features: "
            "all numbers of an input are multiplied by events.drift_factor"
        ),
    ] = "none"
    drift_round: Annotated[
        NonNegativeInt, Help("first round whose client tasks and evaluation see the changed data, for events.drift")
    ] = 0
    drift_at: Annotated[
        NonNegative,
        Help("virtual seconds from which on client tasks that begin and evaluation see the changed data, instead"),
    ] = 0.0
    drift_share: Annotated[
        PositiveShare,
        Help("share of the clients whose data change, drawn from the seed; with 1 the common test set changes too"),
    ] = 1.0
    drift_factor: Annotated[Positive, Help("factor of events.drift features: below 1 images are darker")] = 0.5


def check(events: Events, devices: Devices) -> None:
    """ConfigError for events that contradict one another, or have no effect."""
    if events.leave and not devices.on:
        raise ConfigError(
            f"events.leave: {events.leave} needs a clock. Set devices.preset to uniform, classes, phones, day or trace."
        )
    leaving = (events.leave > 0, "events.leave 0. Set events.leave to the share of clients that leave")
    drifting = (events.drift != "none", "events.drift none. Set events.drift to labels or features")
    needs = {
        "leave_at": leaving,
        "back_at": leaving,
        "drift_round": drifting,
        "drift_at": drifting,
        "drift_share": drifting,
        "drift_factor": (events.drift == "features", f"events.drift {events.drift}. Set events.drift to features"),
    }
    for name, (used, why) in needs.items():
        if not used:
            refuse_if_set(events, f"events.{name}", f"{why}, or leave it out.")
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
    if events.drift_at and not devices.on:
        raise ConfigError(
            f"events.drift_at: {events.drift_at} needs a clock. Set devices.preset to uniform, classes, phones, day or "
            "trace, or events.drift_round in its place."
        )
