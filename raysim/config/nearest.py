"""The nearest known name to one that was mistyped: every "did you mean" in raysim comes from here."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

STUDY = (
    "A run has one value of each option; several seeds, or several values, are the rows of a study: "
    "python -m raysim.study --grid OPTION=A,B --seeds 0-4 --output FOLDER (python -m raysim.study --help)."
)
ELSEWHERE = {
    **dict.fromkeys(("data", "dataset"), "workload"),
    **dict.fromkeys(("gpu", "gpus", "num_gpus", "device", "cuda"), "engine.gpus_per_client"),
    **dict.fromkeys(("workers", "num_workers", "processes"), "engine.actors"),
    **dict.fromkeys(
        ("fraction", "client_fraction", "participation", "join_ratio", "clients_per_round"), "schedule.sampling_rate"
    ),
    **dict.fromkeys(("global_rounds", "num_rounds", "communication_rounds"), "schedule.rounds"),
    **dict.fromkeys(("num_clients", "n_clients"), "workload.clients"),
}
"""Options as other programs call them → their names here."""


def own_word(typed: str, prefix: str = "") -> str:
    """A sentence with a leading blank that says what an option of other programs is here; nothing for other names."""
    word = typed.replace("-", "_")
    if word in ("seeds", "repeats", "runs", "trials", "sweep"):
        return f" {STUDY}"
    return f" That is {prefix}{ELSEWHERE[word]} here." if word in ELSEWHERE else ""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of ``known`` that ``name`` was probably meant to be, best first; empty if none comes close.

    Dotted names also match by their last part alone (``schedule.batch_size`` finds ``training.batch_size``), and an
    abbreviation by initials (``lr`` finds ``training.learning_rate``).
    """
    candidates = list(known)
    wanted = _last(name)
    same_field = [candidate for candidate in candidates if _last(candidate) == wanted]
    if same_field:
        return same_field[:3]
    initials = [candidate for candidate in candidates if "_" in candidate and _initials(candidate) == wanted]
    if initials:
        return initials[:3]
    scores = {candidate: _similarity(name, candidate) for candidate in candidates}
    # Only ties with the best: with three of differing likeness the right one is lost among them.
    least = max(0.6, max(scores.values(), default=0.0) - 0.02)
    return [candidate for candidate, score in scores.items() if score >= least][:3]


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """A sentence with a leading blank, or nothing: `` Did you mean --training.learning_rate?``."""
    found = nearest(name, known)
    return f" Did you mean {' or '.join(prefix + candidate for candidate in found)}?" if found else ""


def _last(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_").lower()


def _initials(name: str) -> str:
    return "".join(word[0] for word in _last(name).split("_") if word)


def _similarity(name: str, candidate: str) -> float:
    whole = SequenceMatcher(None, name, candidate).ratio() if "." in name or "." not in candidate else 0.0
    return max(whole, SequenceMatcher(None, _last(name), _last(candidate)).ratio())
