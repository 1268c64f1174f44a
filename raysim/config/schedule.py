"""The section of who takes part in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from raysim.config.kind_files import kind_class, kind_object
from raysim.workloads.option_types import Help, NonNegativeInt, OnlyWith, PositiveInt, PositiveShare

SAMPLERS = ("fixed", "poisson")
"""The ways to draw a round's clients, each with its file in raysim/samplers."""
_MEANINGS = {name: kind_class("samplers", name).meaning for name in SAMPLERS}
if TYPE_CHECKING:
    Sampling = str
else:
    Sampling = Literal[SAMPLERS]


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
            + "; what ε is about follows (docs/wrappers.md)"
        ),
    ] = SAMPLERS[0]
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
