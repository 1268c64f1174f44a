"""The section of who takes part in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from raysim.config.kind_files import kind_class, kind_object
from raysim.workloads.option_types import (
    Ge,
    Help,
    NonNegative,
    NonNegativeInt,
    OnlyWith,
    PositiveInt,
    PositiveShare,
    Share,
)

SAMPLERS = ("fixed", "poisson", "by-size", "power-of-choice", "oort")
"""The ways to draw a round's clients, each with its file in raysim/samplers."""
_MEANINGS = {name: kind_class("samplers", name).meaning for name in SAMPLERS}
if TYPE_CHECKING:
    Sampling = str
else:
    Sampling = Literal[SAMPLERS]
_OORT = OnlyWith("schedule.sampling", "oort")
_SECONDS = OnlyWith("devices.preset")  # without virtual time all clients are equally fast


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
        Sampling,
        Help(
            "a round's clients: "
            + "; ".join(f"{name}: {meaning}" for name, meaning in _MEANINGS.items())
            + "; what ε is about follows (docs/privacy.md)"
        ),
    ] = SAMPLERS[0]
    candidates: Annotated[
        Annotated[float, Ge(1)],
        Help("clients that are asked for their losses, in sizes of the cohort", "d / K of Cho et al. 2022, section 4"),
        OnlyWith("schedule.sampling", "power-of-choice"),
    ] = 2.0
    explore: Annotated[
        Share, Help("share of a cohort that was never chosen before, at first", "ε of Oort, Algorithm 1"), _OORT
    ] = 0.9
    explore_decay: Annotated[PositiveShare, Help("factor on that share after each round", "Oort"), _OORT] = 0.98
    explore_least: Annotated[Share, Help("the least that this share becomes", "Oort"), _OORT] = 0.2
    most_rounds: Annotated[
        NonNegativeInt,
        Help(
            "rounds after which a client is chosen only where no other is left; 0: no such limit", "Oort, section 4.4"
        ),
        _OORT,
    ] = 0
    speed_penalty: Annotated[
        NonNegative,
        Help("exponent α on T / D of clients that take D > T seconds", "Oort, section 4.3"),
        _OORT,
        _SECONDS,
    ] = 2.0
    preferred_speed: Annotated[
        PositiveShare, Help("quantile of the clients' seconds that T is at first", "the code of Oort"), _OORT, _SECONDS
    ] = 0.3
    pacer_step: Annotated[
        Share, Help("amount by which that quantile grows", "Δ of Oort, Algorithm 1"), _OORT, _SECONDS
    ] = 0.05
    pacer_window: Annotated[
        PositiveInt,
        Help(
            "rounds after which it grows, if their clients had less utility than those of as many before", "W of Oort"
        ),
        _OORT,
        _SECONDS,
    ] = 20
    unseen_clients: Annotated[
        NonNegativeInt,
        Help(
            "the last N clients never take part; they are judged like the others, and the rounds table has "
            "unseen_accuracy, the mean over them (other columns of clients leave them out)",
            "Yuan et al. 2022, arXiv 2110.14216",
        ),
    ] = 0
    without: Annotated[
        tuple[NonNegativeInt, ...],
        Help(
            "clients that take no part, 3,7 say: cohorts are drawn as with them and go without them; they are judged "
            "as those of unseen_clients"
        ),
        OnlyWith("devices.preset", "none", why="is not possible"),
    ] = ()
    joins: Annotated[
        tuple[PositiveInt, ...],
        Help("clients that join one group after another, 3,2,3,2 say; empty: all from the start", "FedRAD, Table 2"),
    ] = ()
    join_every: Annotated[
        NonNegativeInt, Help("total local epochs between two groups of joins; 0 if there is no second")
    ] = 0

    @property
    def sampler(self) -> Any:
        """The sampling with its options (``raysim.samplers._sampler.Sampler``)."""
        return kind_object("samplers", self.sampling, self)
