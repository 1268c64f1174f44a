"""Cohorts of the clients with the highest losses among a few candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from raysim.samplers._sampler import Known, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class PowerOfChoice(Sampler):
    """Power of choice: the K candidates of d whose local loss with the current model is highest.

    Cho, Wang and Joshi 2022, Towards understanding biased client selection in federated learning (AISTATS; arXiv
    2010.01243), section 4, π_pow-d: (1) d candidates are drawn without replacement in proportion to their training
    samples; (2) each is sent the current model θ and answers with F_i(θ), its mean loss over all its training samples;
    (3) the K with the largest train. d = round(candidates · K), at most all; d = K is sampling by size.

    Every candidate costs a message down and 4 bytes up beside what training costs: the chosen ones are sent the model
    once more with their task. In virtual time training begins when the slowest candidate has answered, a forward pass
    taking a third of the seconds of training on the same samples.

    Departures: of equal losses the client with the smaller number goes first (in print: at random); updates keep the
    weights that the method gives them (in print: 1/K). The loss is that of the model by which the client is judged,
    which for a method with one global model is θ.
    """

    meaning: ClassVar[str] = (
        "of candidates · K drawn in proportion to their training samples the K with the highest local loss"
    )
    in_virtual_time: ClassVar[Literal["as it is"]] = "as it is"
    adaptive: ClassVar[bool] = True

    candidates: float

    def cohort(self, known: Known, generator: np.random.Generator) -> NDArray[np.int64]:
        """Asks the candidates, and takes those with the highest losses."""
        import numpy as np

        from raysim.schedule import weighted_sample

        weights = known.samples(known.clients).astype(np.float64)
        places = weighted_sample(max(known.count, round(self.candidates * known.count)), weights, generator)
        asked = np.array([known.clients[place] for place in places], np.int64)
        assert known.ask is not None, "it is adaptive"
        losses = known.ask(asked.tolist()).mean
        finite = np.where(np.isfinite(losses), losses, -np.inf)  # a model that overflows would be asked for ever
        highest_first = np.lexsort((asked, -finite))
        return np.sort(asked[highest_first[: known.count]])


KIND = PowerOfChoice
