"""The contract of an attack: what malicious clients train with and send, and how its success is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.method import ClientTask, Module, Vector
from raysim.workloads.federated_data import ClientData, Federation, Samples
from raysim.workloads.metrics import EvaluationSums
from raysim.workloads.objective import Objective

SUCCESS = "attack_success"
"""Column of the tables: the share of test samples that are given the label that the attackers want."""


class Planned(NamedTuple):
    """A planned server step."""

    updates: int
    attackers: int
    """How many of the updates are malicious on average."""


@dataclass(frozen=True)
class Attacker:
    """One kind of attack; its fields are the options of the section ``attack`` that it reads. This one does no harm."""

    omniscient: ClassVar[bool] = False
    """Whether it knows the honest updates of the round: then :meth:`forged` says what is sent, else :meth:`sent`."""
    changes_vectors: ClassVar[bool] = True
    """Whether it changes what a client sends, and not the data alone."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Columns that it adds to the tables of rounds and clients: figures of :meth:`objective` or :meth:`further`."""

    def check(self, federation: Federation) -> None:
        """ConfigError for data that the attack is not for."""

    def check_steps(self, attack: Attack, steps: Sequence[Planned]) -> None:
        """ConfigError where planned server steps, by ascending updates, leave nothing of the attack."""

    def note(self, step: Planned) -> str:
        """A sentence for the run's log on what the attack does in such a step; empty where there is nothing to say."""
        return ""

    def fitted(self, federation: Federation) -> Self:
        """The attack with what it needs to know of these data."""
        return self

    def poisoned(self, data: ClientData, classes: int) -> ClientData:
        """Training data of a malicious client; its test set is as it was."""
        return data

    def sent(self, delta: Vector, task: ClientTask) -> Vector:
        """The vector that a malicious client sends in the place of its change [d] where it knows no other's."""
        return delta

    def forged(self, honest: Sequence[Vector], attackers: int) -> Vector | None:
        """The vector that all malicious clients of a server step send who know the honest updates, at least one [d].

        None: they have nothing to send.
        """
        return None

    def objective(self, objective: Objective) -> Objective:
        """The objective, with the attack's figure where test samples as they are show its success."""
        return objective

    def further(self, module: Module, samples: Samples, batch_size: int, classes: int) -> Mapping[str, EvaluationSums]:
        """Evaluations of changed test samples by the name of a column: their accuracy is the attack's success."""
        return {}


@dataclass(frozen=True)
class Omniscient(Attacker):
    """Made from the honest updates of the same server step."""

    omniscient: ClassVar[bool] = True

    def check_steps(self, attack: Attack, steps: Sequence[Planned]) -> None:
        """ConfigError where no step takes more than one update."""
        if steps[-1].updates == 1:
            raise ConfigError(
                f"attack.kind: {attack.kind} is made from the honest updates of the same server step, and here a step "
                "takes one update. Raise schedule.sampling_rate or timing.buffer, or attack.kind sign-flip."
            )
