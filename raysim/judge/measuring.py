"""The measure by which two groups of runs are judged, and its values in all pairs."""

from __future__ import annotations

from raysim.errors import ConfigError
from raysim.judge.refusals import Refusal
from raysim.judge.runs import Pairs
from raysim.results.measures import Measure, find
from raysim.studies.choosing import by_validation

JUDGING = "accuracy, loss, client_accuracy_mean, client_accuracy_worst_decile, validated_accuracy, tail_accuracy"


def measure_of(name: str, pairs: Pairs) -> Measure:
    """The measure of that name; empty: test accuracy, or test loss of runs that have none.

    Raises:
        ConfigError: there is none, or no value of it is better than another.
    """
    found = find(name or ("accuracy" if not pairs or "accuracy" in pairs[0][0].rounds else "loss"))
    if found.how == "gain":
        raise ConfigError(
            f"--measure {name}: it is over a third group of runs, of method local, and two are judged. Allowed: "
            f"{JUDGING} and the like."
        )
    if not found.best:
        raise ConfigError(f"--measure {name}: no value of it is better than another. Allowed: {JUDGING} and the like.")
    return found


def chooses(measure: Measure) -> list[Refusal]:
    """Why a measure cannot judge: it would choose by test data, or is of the data that chose."""
    if measure.how == "best":
        why = "The best round by test data is a choice by what judges it, and the noisier side gains more."
    elif by_validation(measure):
        why = "Validation data may have chosen options or rounds, and cannot judge them."
    else:
        return []
    advice = "Take accuracy, validated_accuracy (in the round that validation data chose) or tail_accuracy."
    text = f"would be judged by {measure.name}"
    return [Refusal("test data for choosing", "--measure", text, text, why, advice)]


def values_of(measure: Measure, pairs: Pairs) -> tuple[dict[int, tuple[float, float]], list[Refusal]]:
    """Seed → the measure in both runs; a refusal where a run has none."""
    values = dict[int, tuple[float, float]]()
    for first, second in pairs:
        own, others = measure.of(first.rounds), measure.of(second.rounds)
        if own is None or others is None:
            a, b = (f"has {'no value' if one is None else one} with seed {first.seed}" for one in (own, others))
            why = "Pairs without a value would be left out, and those that stay are chosen by their result."
            advice = "Take a measure that all runs have, or a target that all reach."
            return {}, [Refusal("measure", f"rounds.csv, {measure.name}", a, b, why, advice)]
        values[first.seed] = (own, others)
    return values, []
