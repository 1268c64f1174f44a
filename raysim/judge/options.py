"""Options in which two groups of runs differ: those of what is compared may, all others may not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raysim.columns import VALIDATION
from raysim.config.options import show
from raysim.judge.refusals import MISSING, Refusal, listed, of_one
from raysim.judge.runs import Pairs, Run, Side

SUBJECTS = ("method", "compression", "defense", "privacy")
"""Sections that a comparison can be about."""
PAIRED = "workload."
"""Options that may follow the seed (``workload.fold``), as long as both runs of a seed have the same."""


@dataclass(frozen=True)
class Kind:
    """Options that make a comparison unfair for one reason."""

    name: str
    options: tuple[str, ...]
    """Paths, or beginnings of paths that end in a full stop."""
    why: str

    def has(self, path: str) -> bool:
        """Whether the option is one of these."""
        return any(path.startswith(own) if own.endswith(".") else path == own for own in self.options)


KINDS = (
    Kind("data set", ("workload.name", "workload.repository", "workload.path"), "These are other data."),
    Kind("number of clients", ("workload.clients",), "More clients have less data each."),
    Kind("limit of the data", ("workload.limit", "workload.samples_per_client"), "More samples train better."),
    Kind(
        "preprocessing",
        ("workload.augment", "workload.normalize", "workload.laplacian"),
        "Such help serves any method.",
    ),
    Kind(
        "test data",
        ("workload.test_share", "workload.validation_share", "workload.local_test"),
        "Other samples judge, or others are left for training.",
    ),
    Kind("split", ("workload.",), "Another split among clients is another problem."),
    Kind(
        "initial weights",
        ("model.weights_file", "model.weights"),
        "Pretrained weights help any method.",
    ),
    Kind("model", ("model.",), "Another model learns differently with any method."),
    Kind("precision", ("training.precision",), "Another number format gives other results at another cost."),
    Kind("training", ("training.",), "Values that were tuned for one side alone favor it."),
    Kind("rounds", ("schedule.rounds",), "More rounds are more training."),
    Kind(
        "epochs", ("schedule.local_epochs", "schedule.epochs", "schedule.intervals"), "More epochs are more training."
    ),
    Kind("participants", ("schedule.",), "Other cohorts are other work in every round."),
    Kind("evaluation", ("evaluation.",), "Both sides must be judged in the same way."),
    Kind(
        "virtual time", ("devices.", "timing.", "events.", "SHA-256 of devices.trace"), "That is another time budget."
    ),
    Kind("conditions", ("attack.", *(f"{name}." for name in SUBJECTS[1:])), "They change what can be reached."),
    Kind("random streams", ("seed_of",), "Runs of one seed are a pair only where all streams agree."),
    Kind("computation", ("",), "Results depend on it."),
)
"""The first kind that has an option is its kind."""
TUNABLE = "training."


def kind_of(path: str) -> Kind:
    """The kind of an option; of one that is in no other the last."""
    return next((kind for kind in KINDS if kind.has(path)), KINDS[-1])


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Path → both values as text, of the options that differ; the seed aside."""
    paths = [path for path in dict.fromkeys([*first, *second]) if path != "seed"]
    return {
        path: (_text(first, path), _text(second, path))
        for path in paths
        if path not in first or path not in second or first[path] != second[path]
    }


def allowed(path: str, subject: str, tuned: Collection[str]) -> bool:
    """Whether the groups may differ in this option."""
    return path.startswith(f"{subject}.") or path in tuned


def of_one_side(side: Side) -> Iterator[Refusal]:
    """Options that differ between the runs of one group."""
    for run in side.runs[1:]:
        found = differing(side.first.settings, run.settings)
        mixed = {path: values for path, values in found.items() if not path.startswith(PAIRED)}
        if mixed:
            text = "; ".join(f"{path} {one} and {other}" for path, (one, other) in mixed.items())
            value = f"has {text} (seeds {side.first.seed} and {run.seed})"
            why = "A group is one setting on several seeds: one that changes by seed was chosen by its result."
            advice = "Give the runs of one setting, all others with the same options."
            yield of_one(side.letter, "mixed settings", listed(mixed), value, why, advice)
            return


def between(pairs: Pairs, subject: str, tuned: Collection[str]) -> Iterator[Refusal]:
    """Options that differ between the runs of a pair, and may not; a refusal for each kind."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for first, second in pairs:
        for path, values in differing(first.settings, second.settings).items():
            if not allowed(path, subject, tuned):
                found.setdefault(kind_of(path).name, {}).setdefault(path, values)
    for kind in KINDS:
        if own := found.get(kind.name):
            yield _unequal(kind, own)


def _unequal(kind: Kind, own: Mapping[str, tuple[str, str]]) -> Refusal:
    a, b = ("; ".join(f"{path} {values[place]}" for path, values in own.items()) for place in (0, 1))
    advice = f"Run both sides with the same {listed(own)}."
    if kind.name == "training":
        option = next(iter(own)).removeprefix(TUNABLE)
        advice += f" If both sides searched it with equal trials: --tuned {option} --search-a FOLDER --search-b FOLDER."
    elif any(path.startswith(f"{subject}.") for path in own for subject in SUBJECTS):
        advice += f" If the comparison is about it: --subject {next(iter(own)).partition('.')[0]}."
    return Refusal(kind.name, listed(own), a, b, kind.why, advice)


def early_ends(sides: Sequence[Side]) -> Iterator[Refusal]:
    """Runs that test data ended or could have ended: the round whose model counts was chosen by what judges it."""
    values = [_early_end(side.first) for side in sides]
    if any(values):
        a, b = (value or "runs to its last round" for value in values)
        why = "Test data chose the last round, and then judges it."
        advice = "Run without patience and stop_at, or with --evaluation.measure validation_accuracy."
        yield Refusal("test data for choosing", "evaluation.patience, evaluation.stop_at", a, b, why, advice)


def _early_end(run: Run) -> str:
    own = run.settings
    measure = str(own.get("evaluation.measure") or "test accuracy").removeprefix("-")
    patience, target = own.get("evaluation.patience"), own.get("evaluation.stop_at")
    if measure.startswith(VALIDATION) or not (patience or target is not None):
        return ""
    return f"ends by {measure} (patience {show(patience)}, stop_at {show(target)})"


def told(pairs: Pairs) -> dict[str, tuple[str, str]]:
    """The differences of a pair that was accepted."""
    first, second = pairs[0]
    return differing(first.settings, second.settings)


def _text(settings: Mapping[str, Any], path: str) -> str:
    return show(settings[path]) if path in settings else MISSING
