"""Whether a run had the settings that config.yaml names, and ended in the round in which they end it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from raysim.config.all_sections import CHOICES_OF_AUTO
from raysim.config.config_file import CONFIG_NAME
from raysim.config.sections import Evaluation
from raysim.engine.early_stopping import ColumnWatch, is_less_better
from raysim.units import counted
from raysim.verification.verdict import Difference

if TYPE_CHECKING:
    from pandas import DataFrame


def setting_differences(given: Mapping[str, Any], proven: Mapping[str, Any]) -> Iterator[Difference]:
    """Settings of config.yaml, ``given``, that are not those of the proof."""
    for name, value in proven.items():
        left = given.get(name) == "auto" and value in CHOICES_OF_AUTO.get(name, ())
        if name in given and given[name] != value and not left:
            yield Difference(CONFIG_NAME, f"{given[name]!r}, and {value!r} in the proof", item=name)
        elif name not in given and " " not in name:  # "SHA-256 of devices.trace" is no setting
            yield Difference(CONFIG_NAME, f"it is missing; {value!r} in the proof", item=name)


def planned_rounds(settings: Mapping[str, Any]) -> int | None:
    """How many rounds settings ask for; None for a method of a user's own, whose code alone could say."""
    if ":" in str(settings.get("method.name", "")) and settings.get("schedule.intervals") != "fixed":
        return None
    epochs, interval = int(settings.get("schedule.epochs") or 0), int(settings.get("schedule.local_epochs") or 1)
    return epochs // interval if epochs else int(settings.get("schedule.rounds") or 0)


def end_differences(
    settings: Mapping[str, Any], rounds: DataFrame, done: int, planned: int | None, taken: int
) -> Iterator[Difference]:
    """The difference of a run that ended before its settings end it, or went on behind that.

    Args:
        settings: the run's, by their names, from its proof.
        rounds: the table of rounds.
        done: how many rounds the proof has.
        planned: how many rounds the settings ask for; None where only a user's own code could say.
        taken: how many of the first rounds a replay took from another run, whose settings these rounds had.
    """
    ends = _early_ends(settings, rounds)
    for end in ends:
        whole = planned in (None, done) if end is None else end == done or end <= taken == done
        if whole and done <= (planned or done):
            return
    early = min((end for end in ends if end is not None), default=done)
    ended = f"the run ended after {done}"
    if early < done:
        yield Difference(CONFIG_NAME, f"evaluation.patience or stop_at end it after round {early}, and {ended}")
    else:
        yield Difference(CONFIG_NAME, f"{counted(planned or 0, 'round')} planned, and {ended}")


def _early_ends(settings: Mapping[str, Any], rounds: DataFrame) -> set[int | None]:
    """The round after which ``evaluation.patience`` and ``stop_at`` end the run, None if none.

    Two, where it depends on the data which values of the column are better: a user's own metric may have a name that
    raysim gives another meaning.
    """
    options = Evaluation(
        patience=settings.get("evaluation.patience") or 0,
        stop_at=settings.get("evaluation.stop_at"),
        measure=settings.get("evaluation.measure") or "",
    )
    column = options.measure.removeprefix("-") or ("accuracy" if "accuracy" in rounds else "loss")
    rows, found = rounds.to_dict("records"), set[int | None]()
    for less in {is_less_better(options.measure, column, own) for own in ((), (column,))}:
        watch, end = ColumnWatch(options, column, less=less), None
        for row in rows:
            watch.see(row)
            if watch.reason:
                end = int(row["round"])
                break
        found.add(end)
    return found
