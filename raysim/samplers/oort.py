"""Cohorts of clients whose data promise most and whose devices are fast enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from raysim.samplers._sampler import Known, Losses, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CLIPPED = 0.95
"""Quantile of the explored clients' utilities above which they count no more (Oort, section 4.4)."""
CUTOFF = 0.95
"""c: clients with at least this share of the cut-off utility are admitted (Algorithm 1)."""


@dataclass(frozen=True)
class Oort(Sampler):
    """Oort's training selector: exploitation by utility, and exploration by speed.

    Lai, Zhu, Madhyastha and Chowdhury 2021, Oort: Efficient federated learning via guided participant selection (OSDI),
    Algorithm 1 and sections 4.2 to 4.4. In round R, with K clients to choose:

    - Statistical utility U_i = m_i sqrt(mean over the client's samples of loss²) of its last participation.
    - Score_i = U_i, capped at the 95 % quantile and brought to [0, 1], + sqrt(0.1 ln R / L_i), L_i the round of its
      last participation; times (T / D_i)^α if its task takes D_i > T.
    - ε_R = max(``explore_least``, ``explore`` · ``explore_decay``^(R − 1)). Of the explored clients those with at least
      c = 95 % of the ⌊(1 − ε_R) K⌋-th best score are admitted, and that many of them drawn in proportion to their
      scores; the others are unexplored clients, drawn in proportion to their speeds 1 / D_i.
    - Pacer: every W = ``pacer_window`` rounds T grows by a step if the utility of the last W rounds is less than that
      of the W before.
    - A client that was chosen ``most_rounds`` times is chosen only where no other is left (0: no such limit).

    Departures: losses are those with the model that the client was sent, in a pass before its training (in print: as
    they come during training), and 4 bytes up. Utilities are brought to [0, 1] as in the authors' code, as beside raw
    ones the second summand would vanish. T is a quantile of the D_i of all clients that are present and idle,
    ``preferred_speed`` at first and more by ``pacer_step``, as in the authors' code (in print: seconds, which differ
    from run to run). D_i is known of all clients; without virtual time all are alike, and neither T nor speeds matter.
    Where unexplored clients are too few, explored ones take their places.
    """

    meaning: ClassVar[str] = "those whose losses and speeds promise most, and some that were never chosen"
    in_virtual_time: ClassVar[Literal["as it is"]] = "as it is"
    adaptive: ClassVar[bool] = True
    reports: ClassVar[bool] = True

    explore: float
    explore_decay: float
    explore_least: float
    most_rounds: int
    speed_penalty: float
    preferred_speed: float
    pacer_step: float
    pacer_window: int

    def first_memory(self) -> Any:
        """Explored clients, ascending, with utility, last round and number of rounds of each; utilities of rounds."""
        import numpy as np

        return {
            "clients": np.zeros(0, np.int64),
            "utility": np.zeros(0, np.float64),
            "last": np.zeros(0, np.int64),
            "times": np.zeros(0, np.int64),
            "rounds": np.zeros(0, np.float64),
            "steps": 0,
        }

    def cohort(self, known: Known, generator: np.random.Generator) -> NDArray[np.int64]:
        """Explored clients by score, unexplored ones by speed, and of those chosen too often as many as are missing."""
        import numpy as np

        from raysim.schedule import weighted_sample

        there, memory = np.asarray(known.clients, np.int64), known.memory
        tired = memory["clients"][memory["times"] >= self.most_rounds] if self.most_rounds else there[:0]
        old = np.flatnonzero(np.isin(memory["clients"], there) & ~np.isin(memory["clients"], tired))
        new = np.setdiff1d(there, memory["clients"])
        exploited = math.floor((1 - self.exploration(known.number)) * known.count + 1e-9)  # (1 − 0.8) · 5 is 1
        exploited = min(len(old), max(exploited, known.count - len(new)))
        chosen = [memory["clients"][old[self._by_score(self.scores(known)[old], exploited, generator)]]]
        speeds = np.ones(len(new)) if known.seconds is None else 1 / known.seconds(new.tolist())
        chosen.append(new[weighted_sample(known.count - exploited, speeds, generator)])
        missing = known.count - sum(map(len, chosen))
        rest = np.setdiff1d(there, np.concatenate(chosen))
        chosen.append(rest[weighted_sample(missing, np.ones(len(rest)), generator)])
        return np.sort(np.concatenate(chosen))

    def exploration(self, number: int) -> float:
        """ε_R, the share of unexplored clients."""
        return max(self.explore_least, self.explore * self.explore_decay ** (number - 1))

    def scores(self, known: Known) -> NDArray[np.float64]:
        """The explored clients' scores [e], for round ``known.number``."""
        import numpy as np

        utility, last = known.memory["utility"], known.memory["last"]
        if not len(utility):
            return np.zeros(0)
        capped = np.minimum(utility, np.quantile(utility, CLIPPED))
        low = capped.min()
        scores = (capped - low) / max(capped.max() - low, 1e-4) + np.sqrt(0.1 * math.log(known.number) / last)
        if known.seconds is not None:
            durations = known.seconds(known.memory["clients"].tolist())
            share = min(1.0, self.preferred_speed + self.pacer_step * known.memory["steps"])
            preferred = np.quantile(known.seconds(known.clients), share)
            scores *= np.minimum(1.0, preferred / durations) ** self.speed_penalty
        return np.asarray(scores, np.float64)

    @staticmethod
    def _by_score(scores: NDArray[np.float64], count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Places of ``count`` of those whose score is at least c times the ``count``-th best."""
        import numpy as np

        from raysim.schedule import weighted_sample

        if not count:
            return np.zeros(0, np.int64)
        admitted = np.flatnonzero(scores >= CUTOFF * np.sort(scores)[-count])
        return admitted[weighted_sample(count, scores[admitted], generator)]

    def learn(self, known: Known, clients: Sequence[int], losses: Losses) -> Any:
        """The clients' utilities, and the pacer's step."""
        import numpy as np

        before, now = known.memory, np.asarray(clients, np.int64)
        utility = known.samples(clients) * np.sqrt(np.nan_to_num(losses.mean_square))
        every = np.union1d(before["clients"], now)
        old, new = np.searchsorted(every, before["clients"]), np.searchsorted(every, now)
        after: dict[str, Any] = {"clients": every}
        for name in ("utility", "last", "times"):
            after[name] = np.zeros(len(every), before[name].dtype)
            after[name][old] = before[name]
        after["utility"][new], after["last"][new] = utility, known.number
        after["times"][new] += 1
        window = self.pacer_window
        after["rounds"] = np.append(before["rounds"], utility.sum())[-2 * window :]
        paces = len(after["rounds"]) == 2 * window and known.number % window == 0
        slower = paces and after["rounds"][:window].sum() > after["rounds"][window:].sum()
        after["steps"] = before["steps"] + int(slower)
        return after


KIND = Oort
