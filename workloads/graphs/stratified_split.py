"""Training, validation and test part of one set of graphs, stratified by class."""

from __future__ import annotations

import math
import zlib

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.graph_set import Integers

PUBLISHED_SEED = 123
"""Seed of the one split that the code of GCFL, FedStar and FedSSP has for all runs."""


def stratified(
    labels: Integers, validation_share: float, test_share: float, generator: np.random.Generator
) -> tuple[Integers, Integers, Integers]:
    """(training, validation, test): ascending indices into ``labels``, each graph in one part, chosen at random.

    A part has its share of all graphs, rounded (a half upwards), and of every class its share of that, rounded down or
    up. Small sets bend this, in this order: the training part is never empty; the test part, then the validation part
    has a graph where its share is not 0; a class keeps a graph to train on, and so has none elsewhere if it has one in
    all.

    ``labels`` [graphs] needs no particular values; the shares are at least 0 and in sum below 1. No graphs: empty
    parts.
    """
    classes, members_of = np.unique(labels, return_inverse=True)
    counts = np.bincount(members_of, minlength=len(classes))
    test = _quotas(counts, test_share, counts, len(labels) - 1)
    validation = _quotas(counts, validation_share, counts - test, len(labels) - 1 - int(test.sum()))
    parts: list[list[Integers]] = [[], [], []]
    for label in range(len(classes)):
        members = generator.permutation(np.flatnonzero(members_of == label))
        cuts = np.cumsum([test[label], validation[label]])
        for part, chosen in zip(parts, np.split(members, cuts), strict=True):
            part.append(chosen)
    tests, validations, trainings = (np.sort(np.concatenate([np.zeros(0, np.int64), *part])) for part in parts)
    return trainings, validations, tests


def published(
    labels: Integers, validation_share: float, test_share: float, name: str
) -> tuple[Integers, Integers, Integers]:
    """(training, validation, test) as the code of GCFL, FedStar and FedSSP splits a set: the same for all seeds.

    Two stratified splits by scikit-learn, both with seed 123: first what is to train on, then the rest in two.

    Raises:
        WorkloadError: a part has fewer graphs than there are classes, or a class too few graphs; ``name`` says of what.
    """
    from sklearn.model_selection import train_test_split  # a second to import

    held = validation_share + test_share
    try:
        training, rest = train_test_split(
            np.arange(len(labels)), test_size=held, stratify=labels, random_state=PUBLISHED_SEED
        )
        validation, test = rest[:0], rest
        if validation_share:
            validation, test = train_test_split(
                rest,
                **_sizes(len(rest), validation_share / held, test_share / held),
                stratify=labels[rest],
                random_state=PUBLISHED_SEED,
            )
    except ValueError as error:
        raise WorkloadError(
            f"{name}: its {len(labels)} graphs cannot be split as published ({error}); set split to drawn"
        ) from error
    return np.sort(training), np.sort(validation), np.sort(test)


def _sizes(count: int, training: float, test: float) -> dict[str, float]:
    """Shares as that code gives them to scikit-learn; of numbers that it rounds to more than there are, the test's."""
    shares = {"train_size": training, "test_size": test}
    return shares if math.floor(count * training) + math.ceil(count * test) <= count else {"test_size": test}


def folded(
    labels: Integers, validation_share: float, test_share: float, fold: int, name: str
) -> tuple[Integers, Integers, Integers]:
    """(training, validation, test) of one fold of a cross-validation: the same for all seeds.

    The graphs are dealt, class by class in random order, to 1 / ``test_share`` folds, whose sizes, and numbers of
    graphs of a class, differ by at most one. Folds 0 to n − 1 test every graph once, n to 2n − 1 are a second drawing,
    and so on. The validation part is a stratified share of what is not tested.

    Args:
        labels: class of each graph [graphs].
        validation_share: share of all graphs.
        test_share: 1 / n, n a whole number.
        fold: which one is the test part, counted from 0.
        name: of the set, which gives its random numbers.

    Raises:
        WorkloadError: ``test_share`` is no 1 / n, or there are fewer graphs than folds.
    """
    count = round(1 / test_share)
    if not math.isclose(count * test_share, 1, rel_tol=1e-6):
        raise WorkloadError(
            f"{name}: test_share = {test_share:g} makes no whole number of folds; set it to 0.1 for ten folds, 0.2 for "
            "five, or split to drawn"
        )
    if len(labels) < count:
        raise WorkloadError(
            f"{name}: {len(labels)} graphs are fewer than {count} folds; raise test_share, or set split to drawn"
        )
    set_number, (drawing, tested) = zlib.crc32(name.encode()), divmod(fold, count)
    generator = np.random.default_rng((set_number, drawing))
    shuffled = generator.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    rest, test = (np.sort(order[(np.arange(len(order)) % count == tested) == inside]) for inside in (False, True))
    drawn = np.random.default_rng((set_number, drawing, tested))
    training, validation, _ = stratified(labels[rest], validation_share / (1 - test_share), 0.0, drawn)
    return rest[training], rest[validation], test


def _quotas(counts: Integers, share: float, free: Integers, most: int) -> Integers:
    """Number of graphs of each class [classes] that one part gets.

    Of ``counts`` there are, ``free`` are not taken yet, and the part may have at most ``most`` in all.
    """
    if share <= 0 or most <= 0:
        return np.zeros(len(counts), np.int64)
    # A share such as 0.1 of 30 must be 3, not 2.9999…: what is whole but for rounding counts as whole.
    wanted = np.floor(counts * share + 1e-9).astype(np.int64)
    size = min(max(1, math.floor(int(counts.sum()) * share + 0.5 + 1e-9)), most)
    quotas: Integers = np.minimum(wanted, np.maximum(free - 1, 0))
    for keep in (1, 0):  # first so that every class keeps a graph, then, if that is not enough, without
        while quotas.sum() < size and (quotas < free - keep).any():
            lacking = np.where(quotas < free - keep, counts * share - quotas, -np.inf)
            quotas[int(lacking.argmax())] += 1
        if quotas.sum():
            break  # a part that has something does not take a class's last graph
    while quotas.sum() > size:
        quotas[int((quotas - counts * share).argmax())] -= 1
    return quotas
