"""The privacy budget that noise spends: ε by the dp-accounting library, which is imported where it is first asked.

A history is what was asked about the data of one client or sample: sums with Gaussian noise over random parts of all.
Its two forms belong to two meanings of "neighbors". A cohort of fixed size is drawn without replacement; then one
client is *replaced* by another, and a sum of vectors up to the bound C moves by up to 2 C. A batch of DP-SGD, or a
cohort of ``schedule.sampling poisson``, holds every sample or client with the same probability; then one of them is
*added or removed*, and the sum moves by up to C.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from raysim.config.privacy import Privacy
from raysim.errors import ConfigError

ORDERS = (*(1 + tenths / 10 for tenths in range(1, 100)), *range(11, 32), *range(32, 65, 4), 128, 512, 1024)
"""Orders of Rényi divergence. Any give an upper bound of ε; of the library's own, those that cost most are left out."""
COARSE_ORDERS = tuple(order for order in ORDERS if order == int(order))
"""Those that are fast to compute of Poisson samples."""
LEAST = 0.01
"""Noise below which none is looked for."""
TOLERANCE = 1e-3
"""How far the noise that is found may be above the least."""
LARGE = 100.0
"""ε above which privacy loss distributions, whose memory grows with it, are not computed: Rényi's bound is told."""


@dataclass(frozen=True, order=True)
class Sums:
    """A number of noised sums over random parts of the same clients or samples."""

    drawn: float
    """How many are drawn for each sum; of a Poisson sample the mean, which need not be whole."""
    of: int
    """Size of the population; of a Poisson sample only the ratio counts, the probability of each."""
    replaced: bool
    """Drawn without replacement, neighbors replace one; else a Poisson sample, neighbors add or remove one."""
    count: int = 1
    """How many such sums."""


History = tuple[Sums, ...]


def epsilon(histories: Iterable[History], noise: float, privacy: Privacy) -> float:
    """The largest ε of several histories; 0 of none.

    Args:
        histories: those of single clients, or of a sample of each client.
        noise: standard deviation of the noise as a multiple of the bound C.
        privacy: says δ and the accountant.
    """
    return _worst(histories, noise, privacy)[0]


def calibrated(histories: Iterable[History], privacy: Privacy) -> float:
    """The least noise, as a multiple of the bound C, for which no history spends more than ``privacy.epsilon``.

    Raises:
        ConfigError: less than ``LEAST`` would do.
    """
    assert privacy.epsilon is not None
    distinct, noise = set(histories), 1.0
    _, worst = _worst(distinct, noise, privacy)
    while not worst:  # next to nothing, which is told as nothing
        noise /= 2
        _, worst = _worst(distinct, noise, privacy)
    while True:  # another history may be the worst with other noise
        noise = _calibrated(worst, privacy)
        found, worst = _worst(distinct, noise, privacy)
        if found <= privacy.epsilon * (1 + 1e-9):
            return noise


def _worst(histories: Iterable[History], noise: float, privacy: Privacy) -> tuple[float, History]:
    """The largest ε and its history. Only those whose upper bound lies above the largest so far are computed."""
    distinct, largest = _not_below(histories), 0.0
    bounds = dict.fromkeys(distinct, math.inf)
    if len(distinct) > 1:
        bounds = {history: _by_orders(history, noise, privacy.delta, COARSE_ORDERS) for history in distinct}
    worst: History = ()
    for history in sorted(distinct, key=lambda each: (-bounds[each], each)):
        if bounds[history] <= largest:
            break
        found = _epsilon(history, noise, privacy)
        if found > largest:
            largest, worst = found, history
    return largest, worst


def _not_below(histories: Iterable[History]) -> set[History]:
    """Without histories that spend surely no more than another: as many Poisson samples or fewer, of a lower rate."""
    found = {history for history in histories if history}
    if any(len(history) != 1 or history[0].replaced for history in found):
        return found
    most: set[History] = set()
    longest = 0
    for (sums,) in sorted(found, key=lambda history: (-history[0].drawn / history[0].of, -history[0].count)):
        if sums.count > longest:
            most.add((sums,))
            longest = sums.count
    return most


def _epsilon(history: History, noise: float, privacy: Privacy) -> float:
    return min(_epsilon_of(form, noise, privacy) for form in _forms(history))


def _forms(history: History) -> list[History]:
    """The history, and the same sums over all: the bound of subsets may be the larger one where these are large."""
    whole = tuple(replace(sums, drawn=sums.of) for sums in history)
    return [history, whole] if _subset(history) else [history]


def _epsilon_of(history: History, noise: float, privacy: Privacy) -> float:
    if privacy.accountant == "rdp" or _by_orders(history, noise, privacy.delta, COARSE_ORDERS) > LARGE:
        return _by_orders(history, noise, privacy.delta, ORDERS)
    if scale := _whole(history):
        import dp_accounting

        return float(dp_accounting.get_epsilon_gaussian(noise / scale, privacy.delta))
    accountant = _accountant(history, "pld")
    return float(accountant.compose(_event(history, noise)).get_epsilon(privacy.delta))


def _by_orders(history: History, noise: float, delta: float, orders: tuple[float, ...]) -> float:
    from dp_accounting import rdp

    total: Any = sum(sums.count * _divergences(replace(sums, count=1), noise, orders) for sums in history)
    with _quiet():
        found = rdp.compute_epsilon(orders, total, delta)[0]
    return float(found)


@lru_cache(maxsize=16_384)
def _divergences(sums: Sums, noise: float, orders: tuple[float, ...]) -> Any:
    """Rényi divergences of one sum [orders]; those of several are as many times as large."""
    accountant = _accountant((sums,), "rdp", orders)
    with _quiet():
        accountant.compose(_event((sums,), noise))
    return accountant._rdp  # no public function gives them, and to compute them takes up to a second


def _accountant(history: History, name: str, orders: tuple[float, ...] = ORDERS) -> Any:
    import dp_accounting
    from dp_accounting import pld, rdp

    neighbors = dp_accounting.NeighboringRelation
    relation = neighbors.REPLACE_ONE if _subset(history) else neighbors.ADD_OR_REMOVE_ONE
    return rdp.RdpAccountant(orders, relation) if name == "rdp" else pld.PLDAccountant(relation)


def _subset(history: History) -> bool:
    """Whether any sum is over a part of fixed size. Sums over all need no relation: their noise says enough."""
    return any(sums.replaced and sums.drawn < sums.of for sums in history)


def _event(history: History, noise: float) -> Any:
    """The event for the library. Its noise multiplier is in terms of what neighbors move the sum by, not of C."""
    import dp_accounting as library

    events = []
    for sums in history:
        event = library.GaussianDpEvent(noise / 2 if sums.replaced else noise)
        if sums.drawn < sums.of and sums.replaced:
            event = library.SampledWithoutReplacementDpEvent(sums.of, sums.drawn, event)
        elif sums.drawn < sums.of:
            event = library.PoissonSampledDpEvent(sums.drawn / sums.of, event)
        events.append(library.SelfComposedDpEvent(event, sums.count))
    return library.ComposedDpEvent(events)


def _whole(history: History) -> float:
    """The multiple of C that all sums over all clients, one Gaussian mechanism, move by together; else 0."""
    if any(sums.drawn < sums.of for sums in history):
        return 0.0
    return math.sqrt(sum(sums.count * (4 if sums.replaced else 1) for sums in history))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's warnings of orders that it leaves out, or of which the last would be the best."""
    logger = logging.getLogger("absl")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _calibrated(history: History, privacy: Privacy) -> float:
    """The least noise for one history."""
    import dp_accounting

    target = privacy.epsilon or 0.0
    by_orders = privacy.accountant == "rdp" or target > LARGE / 2
    orders = ORDERS if by_orders else COARSE_ORDERS  # which then only say where to begin

    def search(history: History, accountant: str, lower: float, guess: float) -> float:
        with _quiet():
            found = dp_accounting.calibrate_dp_mechanism(
                lambda: _accountant(history, accountant, orders),
                lambda noise: _event(history, noise),
                target,
                privacy.delta,
                dp_accounting.LowerEndpointAndGuess(lower, guess),
                tol=TOLERANCE,
            )
        return float(found)

    if _by_orders(history, LEAST, privacy.delta, orders) <= target:
        raise ConfigError(
            f"privacy.epsilon: {target} is too large: noise below {LEAST} times the bound spends less. Choose a "
            "smaller one, such as 8, or set privacy.noise_multiplier."
        )
    noise = min(search(form, "rdp", LEAST, 1.0) for form in _forms(history))
    if by_orders:
        return noise
    if scale := _whole(history):
        return scale * float(dp_accounting.get_sigma_gaussian(target, privacy.delta))
    lower = noise  # not far below: the less noise, the wider the distribution of the loss
    while _epsilon(history, lower, privacy) <= target:
        lower *= 0.9
    return search(history, "pld", lower, lower / 0.9)
