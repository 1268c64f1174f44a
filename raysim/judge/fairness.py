"""Whether two groups of runs had the same seeds, data and code, beside options and budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest

from raysim.judge import budget, options
from raysim.judge.refusals import MISSING, Refusal, listed, of_one
from raysim.judge.runs import Pairs, Run, Side


def refusals(a: Side, b: Side, subject: str, tuned: Collection[str]) -> list[Refusal]:
    """All reasons against a comparison of two groups, each of whole runs.

    Args:
        subject: the section that the comparison is about.
        tuned: paths of further options that may differ.
    """
    found = [*repeated(a), *repeated(b), *shared(a, b), *seeds(a, b), *options.of_one_side(a), *options.of_one_side(b)]
    pairs = pairs_of(a, b)
    if pairs:
        found += [*options.between(pairs, subject, tuned), *options.early_ends((a, b))]
        found += [*split(pairs), *code(pairs)]
        said = {refusal.kind for refusal in found}
        found += [refusal for refusal in budget.refusals(pairs) if refusal.kind not in said]
        if not found and not options.told(pairs):
            why, advice = "Two groups of one setting have nothing to tell apart.", "Give runs of another method as B."
            found.append(Refusal("nothing differs", "config.yaml", "has all options of B", "those of A", why, advice))
    return found


def pairs_of(a: Side, b: Side) -> list[tuple[Run, Run]]:
    """The runs of equal seeds."""
    first, second = a.by_seed, b.by_seed
    return [(first[seed], second[seed]) for seed in first if seed in second]


def repeated(side: Side) -> Iterator[Refusal]:
    """Seeds that a group has more than once."""
    for seed, count in Counter(run.seed for run in side.runs).items():
        if count > 1:
            own = [run for run in side.runs if run.seed == seed]
            copies = len({run.head for run in own}) == 1
            value = f"has seed {seed} in {listed(run.folder for run in own)}"
            why = "A copy says nothing new." if copies else "One of them was kept for its result."
            kind = "copied run" if copies else "repeated seed"
            advice = f"Give one run of seed {seed}, and new seeds for more runs."
            yield of_one(side.letter, kind, "seed", value, why, advice)


def shared(a: Side, b: Side) -> Iterator[Refusal]:
    """Runs that are in both groups."""
    both = {run.head: run for run in a.runs}
    if own := [(both[run.head], run) for run in b.runs if run.head in both]:
        first, second = own[0]
        why = f"{len(own)} of the runs are in both groups, so that their difference is 0."
        texts = (f"has the proof {first.head[:8]} in {first.folder}", f"the same in {second.folder}")
        yield Refusal("same run on both sides", "proof.jsonl", *texts, why, "Give each run to one side.")


def seeds(a: Side, b: Side) -> Iterator[Refusal]:
    """Seeds that one side alone has, and seeds that were left out."""
    first, second = [*a.by_seed], [*b.by_seed]
    texts = f"has seeds {listed(first)}", f"has seeds {listed(second)}"
    if len(first) != len(second):
        why = "The side with more seeds could keep the better ones."
        yield Refusal("number of seeds", "seed", *texts, why, _missing(first, second))
    elif first != second:
        why = "Only runs of equal seeds share split, initial model and cohorts."
        yield Refusal("other seeds", "seed", *texts, why, _missing(first, second))
    elif first and (gaps := sorted(set(range(first[0], first[-1] + 1)) - set(first))):
        why = "Seeds with gaps may be those with the wanted result."
        yield Refusal("gaps in the seeds", "seed", *texts, why, f"Run both sides with seeds {listed(gaps)} too.")


def _missing(first: Sequence[int], second: Sequence[int]) -> str:
    lacking = {"A": sorted(set(second) - set(first)), "B": sorted(set(first) - set(second))}
    texts = [f"{letter} with seeds {listed(own)}" for letter, own in lacking.items() if own]
    return f"Run {' and '.join(texts)}, and give all runs."


def split(pairs: Pairs) -> Iterator[Refusal]:
    """Clients that have other samples in one run of a pair than in the other."""
    for first, second in pairs:
        one, other = first.samples, second.samples
        client = next((client for client in one if client in other and one[client] != other[client]), None)
        if client is not None:
            where = f"clients.csv, client {client}, seed {first.seed}"
            texts = f"has {one[client]} samples", f"has {other[client]}"
        elif first.partition != second.partition:
            where, texts = f"partition.csv, seed {first.seed}", _first_lines(first.partition, second.partition)
        else:
            continue
        why = "The data or their split differ, though the options agree: another copy of the data set, or of the code."
        yield Refusal("data", where, *texts, why, "Run both sides on the same files with the same code.")
        return


def _first_lines(one: str, other: str) -> tuple[str, str]:
    """The first line of two tables that differs, of each."""
    lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="no such line")
    own, others = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
    return f"has {own[:80]}", f"has {others[:80]}"


def code(pairs: Pairs) -> Iterator[Refusal]:
    """Versions, commits of raysim, or sources of one's own, that differ between the runs."""
    runs = [run for pair in pairs for run in pair]
    for name in ("commit", "dirty"):
        yield from _unequal("code", name, {place: run.environment.get(name) for place, run in enumerate(runs)}, runs)
    sources = [run.environment.get("sources", {}) for run in runs]
    yield from _changed_sources(runs)
    for name in dict.fromkeys(name for found in sources for name in found):
        digests = {place: ", ".join(found[name]) for place, found in enumerate(sources) if name in found}
        yield from _unequal("code", f"sources of {name}", digests, runs)
    versions = [run.environment.get("versions", {}) for run in runs]
    for name in dict.fromkeys(name for found in versions for name in found):
        yield from _unequal("version", name, {place: found.get(name) for place, found in enumerate(versions)}, runs)


def _changed_sources(runs: Sequence[Run]) -> Iterator[Refusal]:
    """The first run of each side that was resumed with another source."""
    for side in (0, 1):
        for run in runs[side::2]:
            if names := [name for name, digests in run.environment.get("sources", {}).items() if len(digests) > 1]:
                value = f"has {len(run.environment['sources'][names[0]])} of {names[0]} ({run.folder})"
                texts = (value, MISSING) if side == 0 else (MISSING, value)
                why = "Its first rounds were computed with another source than its last."
                yield Refusal("code", "environment.json, sources", *texts, why, "Run it again, without a change.")
                break


def _unequal(kind: str, name: str, values: Mapping[int, object], runs: Sequence[Run]) -> Iterator[Refusal]:
    """The first value that is not the first run's; a run's place is even on side A and odd on side B."""
    first = next(iter(values))
    other = next((place for place, value in values.items() if value != values[first]), None)
    if other is None:
        return
    texts = {place: f"has {values[place]} ({runs[place].folder})" for place in (first, other)}
    a, b = ("; ".join(text for place, text in texts.items() if place % 2 == side) or MISSING for side in (0, 1))
    why = "Other code can give other results with the same options."
    yield Refusal(kind, f"environment.json, {name}", a, b, why, "Run all again with one version of the code.")
