"""ε against published numbers and formulas, and noise that is found for an ε."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import dp_accounting
import numpy as np
import pytest

from raysim.config.privacy import Privacy
from raysim.errors import ConfigError
from raysim.wrappers.accounting import COARSE_ORDERS, ORDERS, Sums, _divergences, calibrated, epsilon

RDP = Privacy("dp-sgd", epsilon=8.0)
PLD = Privacy("dp-sgd", epsilon=8.0, accountant="pld")


def steps(samples: int, batch: int, epochs: float) -> tuple[Sums]:
    """DP-SGD as tutorials count it."""
    return (Sums(batch, samples, False, int(epochs * samples / batch)),)


@pytest.mark.parametrize(("noise", "epochs", "printed"), [(1.12, 60, 2.92), (0.6, 30, 9.74), (1.2, 10, 1.20)])
def test_published_dp_sgd(noise: float, epochs: float, printed: float) -> None:
    """MNIST in TensorFlow Privacy's tutorials/README.md: batches of 256, δ = 1e-5.

    Their conversion of Rényi divergences was that of Abadi et al. 2016, log(1/δ) / (α − 1), which gives more than
    today's (Canonne et al. 2020) and is done here too.
    """
    history, orders = steps(60_000, 256, epochs), np.array(ORDERS)
    old = _divergences(replace(history[0], count=1), noise, ORDERS) * history[0].count + np.log(1e5) / (orders - 1)
    assert float(old.min()) == pytest.approx(printed, rel=3e-3)
    assert 0.75 * printed < epsilon([history], noise, RDP) < printed
    assert 0.65 * printed < epsilon([history], noise, PLD) < epsilon([history], noise, RDP)


def test_the_library_s_own_examples() -> None:
    """dp_accounting's pld_privacy_accountant_test: three Gaussians with z = √3, three Poisson samples of a fifth."""
    whole, part = replace(PLD, delta=0.126936), replace(PLD, delta=0.15594)
    assert epsilon([(Sums(1, 1, False, 3),)], 3**0.5, whole) == pytest.approx(1, abs=1e-3)
    assert epsilon([(Sums(1, 5, False, 3),)], 0.5, part) == pytest.approx(1, abs=1e-3)


def test_gaussian_is_exact() -> None:
    """k sums over all with noise z are one with z / √k; of replaced neighbors, two bounds apart, with half of it."""
    exact = dp_accounting.get_epsilon_gaussian(3 / 4**0.5, 1e-5)
    assert epsilon([(Sums(5, 5, False, 4),)], 3.0, PLD) == pytest.approx(exact)
    assert epsilon([(Sums(5, 5, True, 4),)], 6.0, PLD) == pytest.approx(exact)
    assert exact < epsilon([(Sums(5, 5, True, 4),)], 6.0, RDP) < 1.1 * exact


def test_large_losses_are_told_by_divergences() -> None:
    """A distribution of a loss in the thousands would need gigabytes."""
    history = (Sums(9, 10, False, 1000),)
    assert epsilon([history], 0.1, PLD) == epsilon([history], 0.1, RDP) > 1000


def test_subsets_are_the_library_s_event() -> None:
    accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    event = dp_accounting.SampledWithoutReplacementDpEvent(100, 5, dp_accounting.GaussianDpEvent(2.0))
    accountant.compose(event, 30)
    assert epsilon([(Sums(5, 100, True, 30),)], 4.0, RDP) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)
    # Most of the clients: no more than if all took part.
    assert epsilon([(Sums(9, 10, True, 3),)], 4.0, RDP) == epsilon([(Sums(10, 10, True, 3),)], 4.0, RDP)


def test_ten_of_a_thousand_clients() -> None:
    """100 rounds with z = 1: of Poisson cohorts as the literature counts, of fixed ones that exchange a client."""
    poisson, fixed = (Sums(0.01, 1, False, 100),), (Sums(10, 1000, True, 100),)
    assert epsilon([poisson], 1.0, RDP) == pytest.approx(1.21, abs=0.005)
    assert epsilon([fixed], 1.0, RDP) == pytest.approx(11.2, abs=0.05)
    library = dp_accounting.rdp.RdpAccountant()
    library.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 100)
    assert epsilon([poisson], 1.0, RDP) == pytest.approx(library.get_epsilon(1e-5), rel=1e-3)
    assert epsilon([poisson], 1.0, PLD) < epsilon([poisson], 1.0, RDP)


def test_the_worst_history_counts() -> None:
    """Of clients with 40 to 49 samples that take batches of 20 for ten epochs, all in as many steps."""
    histories = [(Sums(20, samples, False, 30),) for samples in range(40, 50)]
    assert epsilon(histories, 3.0, RDP) == epsilon(histories[:1], 3.0, RDP) > epsilon(histories[1:], 3.0, RDP)
    assert epsilon([], 3.0, RDP) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("privacy", "histories"),
    [
        (RDP, [(Sums(5, 100, True, 30), Sums(5, 50, True, 10))]),
        (RDP, [(Sums(20, 400, False, 200),), (Sums(20, 300, False, 150),), (Sums(1, 1, True, 2),)]),
        (PLD, [(Sums(1, 1, True, 10),)]),
        (replace(PLD, epsilon=1.0), [(Sums(1, 10, False, 2),)]),
    ],
)
def test_calibration_inverts_accounting(
    privacy: Privacy, histories: list[tuple[Sums, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    coarse = partial(dp_accounting.pld.PLDAccountant, value_discretization_interval=1e-3)  # a tenth of the time
    monkeypatch.setattr("dp_accounting.pld.PLDAccountant", coarse)
    monkeypatch.setattr("raysim.wrappers.accounting.ORDERS", COARSE_ORDERS)
    noise = calibrated(histories, privacy)
    target = privacy.epsilon
    assert target is not None
    assert 0.99 * target <= epsilon(histories, noise, privacy) <= target * (1 + 1e-9)
    assert epsilon(histories, noise * 0.98, privacy) > target


def test_much_of_an_epsilon_needs_no_more_noise_by_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raysim.wrappers.accounting.ORDERS", COARSE_ORDERS)  # both sides by the same, and fast
    history = [(Sums(1, 2, False, 40),)]
    assert calibrated(history, replace(PLD, epsilon=64.0)) == calibrated(history, replace(RDP, epsilon=64.0))


def test_where_noise_of_one_spends_nothing_less_is_found() -> None:
    privacy = replace(RDP, epsilon=1.0, delta=0.01)
    histories = [(Sums(1, 100, False, 1),)]
    assert epsilon(histories, 1.0, privacy) == 0
    noise = calibrated(histories, privacy)
    assert 0 < noise < 1 and 0.9 < epsilon(histories, noise, privacy) <= 1


def test_too_large_an_epsilon() -> None:
    with pytest.raises(ConfigError, match=r"privacy.epsilon: 1000000.0 is too large"):
        calibrated([(Sums(1, 1, True, 1),)], Privacy("local", epsilon=1e6))
