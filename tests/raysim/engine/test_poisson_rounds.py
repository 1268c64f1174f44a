"""Rounds whose clients join by themselves: none, one or many, with and without privacy, for every method."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raysim.config.privacy import Privacy
from raysim.config.run_config import RunConfig
from raysim.engine.round_columns import measurable
from raysim.errors import ConfigError, RaysimError
from raysim.report.run_page import page
from raysim.results.newest_state import newest_state
from raysim.results.result import comparable
from raysim.running.simulation import run
from raysim.samplers.poisson import Poisson
from raysim.storage.run_folder import RunFolder
from raysim.wrappers.accounting import Sums, epsilon
from raysim.wrappers.privacy import gaussian_noise, whole_updates
from tests.actors.runs import METHODS, OTHERS, quick
from tests.fingerprint import fingerprint
from tests.small_runs import LOGISTIC, small_run, worker_of
from tests.watch import stopped
from tests.wrapped_runs import WRAPPED

POISSON = LOGISTIC | {"schedule.sampling": "poisson", "schedule.sampling_rate": 0.25}
NOBODY = POISSON | {"schedule.sampling_rate": 1e-9}
NOISE = {"privacy__kind": "central", "privacy__noise_multiplier": 1.0, "privacy__clip": 0.5}


def server(config: RunConfig) -> Any:
    return newest_state(RunFolder(Path(config.output)), worker_of(config)).server


def test_a_round_without_a_client_leaves_the_model(tmp_path: Path) -> None:
    config = small_run(tmp_path / "run", NOBODY, evaluation__decompose_every=1)
    result = run(config)
    assert result.rounds["participants"].tolist() == [0, 0, 0] and not len(result.clients)
    assert result.rounds["train_loss"].isna().all() and result.rounds["bytes_up"].tolist() == [0, 0, 0]
    assert result.rounds["accuracy"].nunique() == 1 and result.rounds["accuracy"].notna().all()
    assert np.array_equal(server(config), worker_of(config).model(0).take_shared())
    assert page(result.folder).exists()


def test_central_noise_comes_without_a_client_too(tmp_path: Path) -> None:
    """z C / (q N) of each round's stream, as who took part is not public."""
    config = small_run(tmp_path / "run", NOBODY | {"schedule.sampling_rate": 0.01}, seed=3, **NOISE)
    result = run(config)
    assert result.rounds["participants"].tolist() == [0, 0, 0]
    first = worker_of(config).model(0).take_shared()
    noise = sum(gaussian_noise(first.size, 0.5, 3, number) / np.float32(0.01 * 4) for number in (1, 2, 3))
    np.testing.assert_allclose(server(config) - first, noise, rtol=1e-4, atol=1e-5)
    spent = [epsilon([(Sums(0.01, 1, False, rounds),)], 1.0, Privacy("central")) for rounds in (1, 2, 3)]
    assert result.rounds["epsilon"].tolist() == spent


@pytest.mark.parametrize(("quantile", "sampling"), [(None, "fixed"), (0.5, "fixed"), (None, "by-size")])
def test_a_cohort_of_which_everybody_is_left_out_is_no_noisy_sum(
    tmp_path: Path, quantile: float | None, sampling: str
) -> None:
    """Its planned size is 0: the noise was divided by it."""
    options = LOGISTIC | {
        "schedule.sampling_rate": 0.25,
        "privacy.clip_quantile": quantile,
        "schedule.sampling": sampling,
    }
    alone = [small_run(tmp_path / str(left), options, schedule__without=(left,), **NOISE) for left in range(4)]
    results = [run(config) for config in alone]
    empty = [result.rounds["participants"] == 0 for result in results]
    assert any(rounds.any() for rounds in empty)
    for result, rounds in zip(results, empty, strict=True):
        spent = [0.0, *result.rounds["epsilon"]]
        assert [after == before for before, after in itertools.pairwise(spent)] == rounds.tolist()


def test_an_adaptive_bound_without_a_client_by_hand(tmp_path: Path) -> None:
    """b̃ is ½ and noise of σ_b = z over q N, so that nobody's absence is seen; z_Δ = (1 − ¼)^−½ on the sum."""
    options = NOISE | {"privacy__clip_quantile": 0.5, "privacy__clip_rate": 0.1, "schedule__rounds": 2}
    result = run(small_run(tmp_path / "run", NOBODY | {"schedule.sampling_rate": 0.01}, seed=3, **options))
    assert result.rounds["participants"].tolist() == [0, 0]
    share = 0.5 + whole_updates((), 1.0, 3, 1) / 0.04
    assert result.rounds["clip_bound"].tolist() == pytest.approx([0.5, 0.5 * np.exp(-0.1 * (share - 0.5))])


@pytest.mark.parametrize(
    ("method", "options"),
    [("fedld", {"method__margin_weight": 0.0}), ("fedgh", {}), ("fednova", {}), ("fedrad", {}), ("scaffold", {})],
)
def test_a_cohort_of_one_takes_its_update(tmp_path: Path, method: str, options: dict[str, Any]) -> None:
    """Methods that compare clients find nothing to compare: the step is that of federated averaging."""
    one = LOGISTIC | {"workload.clients": 1, "workload.test_share": 0.2, "schedule.rounds": 1}
    plain = run(small_run(tmp_path / "fedavg", one, schedule__intervals="fixed"))
    found = run(small_run(tmp_path / method, one, method__name=method, schedule__intervals="fixed", **options))
    assert found.rounds["loss"].iloc[-1] == pytest.approx(plain.rounds["loss"].iloc[-1], rel=1e-5)


@pytest.mark.parametrize("privacy", ["local", "dp-sgd"])
def test_a_round_without_a_client_spends_nothing_of_clients(tmp_path: Path, privacy: str) -> None:
    config = small_run(tmp_path / "run", NOBODY, privacy__kind=privacy, privacy__noise_multiplier=1.0)
    assert run(config).rounds["epsilon"].tolist() == [0, 0, 0]
    assert np.array_equal(server(config), worker_of(config).model(0).take_shared())
    with pytest.raises(RaysimError, match=r"privacy.epsilon: no client takes part in any of the 3 rounds") as caught:
        run(small_run(tmp_path / "found", NOBODY, privacy__kind=privacy, privacy__epsilon=8.0))
    assert "sampling_rate" in str(caught.value)


def test_the_divisor_is_the_mean_number_of_clients(tmp_path: Path) -> None:
    """Without noise: the sum of cut updates over q N = 2, however many there are."""
    options = {**NOISE, "privacy__noise_multiplier": 0.0, "privacy__clip": 1e-3, "schedule__sampling_rate": 0.5}
    config = small_run(tmp_path / "run", POISSON, schedule__rounds=1, seed=1, **options)
    result = run(config)
    count = int(result.rounds["participants"].iloc[0])
    assert count != 2 and result.clients["clipped"].tolist() == [1] * count
    moved = np.linalg.norm(server(config) - worker_of(config).model(0).take_shared())
    assert 0.5 * count * 1e-3 / 2 < moved <= count * 1e-3 / 2 * 1.001
    if count == 1:
        assert moved == pytest.approx(1e-3 / 2, rel=1e-3)


@pytest.mark.parametrize(("name", "options"), [("an adaptive bound", {"privacy__clip_quantile": 0.5}), ("a fixed", {})])
def test_the_same_bits_in_other_chunks_and_after_a_stop(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    wanted = {**NOISE, **options, "schedule__rounds": 6, "engine__checkpoint_every": 1, "seed": 2}
    whole = run(small_run(tmp_path / "whole", POISSON, **wanted))
    sizes = whole.rounds["participants"].tolist()
    assert min(sizes) == 0 < max(sizes)
    other = run(small_run(tmp_path / "chunks", POISSON, engine__block_size=1, **wanted))
    config = small_run(tmp_path / "stopped", POISSON, **wanted)
    resumed = run(config, resume=stopped(config, rounds=3))
    assert fingerprint(whole.folder) == fingerprint(other.folder) == fingerprint(resumed.folder)


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in (*METHODS, *OTHERS) if name != "centralized"])
def test_every_method_does_with_few_clients_or_none(tmp_path: Path, method: str) -> None:
    """Rounds of no, one and two clients; what a method cannot tell of one client it leaves, and nothing is NaN."""
    graphs = "workload__name" in quick(method)
    common = {} if graphs else LOGISTIC | {"workload.clients": 6}
    few = {"schedule__sampling": "poisson", "schedule__sampling_rate": 0.18, "schedule__rounds": 8, "seed": 2}
    few |= {"schedule__joins": (), "schedule__join_every": 0, "evaluation__decompose_every": 0, "evaluation__every": 8}
    if quick(method).get("workload__name") == "toy-graphs":
        few["workload__graphs_per_client"] = 20
    config = small_run(tmp_path / "run", common, **quick(method) | few)
    result = run(config)
    sizes = set(result.rounds["participants"].tolist())
    assert {0, 1} <= sizes and max(sizes) > 1
    assert {*comparable(result.rounds).columns} == {*measurable(worker_of(config)), "round"}
    assert np.isfinite(result.rounds["loss"].iloc[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WRAPPED if "devices__preset" not in WRAPPED[name]])
def test_every_wrapper_does_with_few_clients_or_none(tmp_path: Path, name: str) -> None:
    few = {"schedule__sampling": "poisson", "schedule__sampling_rate": 0.18, "schedule__rounds": 8, "seed": 2}
    common = LOGISTIC | {"workload.clients": 6, "training.batch_size": 8}
    if WRAPPED[name].get("attack__kind") == "alie":  # which is refused where a step takes one update
        few["attack__kind"] = "sign-flip"
    if WRAPPED[name].get("defense__rule") == "multi-krum":  # so is this
        few["defense__rule"] = "median"
    if WRAPPED[name].get("defense__rule") == "trimmed-mean":  # and this, of which it would be the mean
        few["defense__byzantine"] = 0.0
    result = run(small_run(tmp_path / "run", common, **WRAPPED[name] | few))
    assert {0, 1} <= set(result.rounds["participants"].tolist())
    assert np.isfinite(result.rounds["loss"].iloc[-1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"privacy__kind": "central"}, "sampling: poisson, one client added or removed"),
        ({"privacy__kind": "central", "schedule__sampling": "fixed"}, "sampling: fixed, one client replaced"),
        ({"privacy__kind": "local"}, "sampling: not counted, one client's data replaced"),
        ({"privacy__kind": "dp-sgd"}, "sampling: poisson, one sample added or removed"),
    ],
)
def test_both_words_stand_beside_every_epsilon(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    """In the notes, the table, the summary and the page, whose tile is named by them."""
    config = small_run(tmp_path / "run", POISSON | {"schedule.rounds": 2}, **options, privacy__noise_multiplier=1.0)
    result = run(config)
    assert result.rounds["neighbors"].tolist() == [words] * 2 and result.summary["neighbors"] == words
    told = (result.folder / "run.log").read_text(encoding="utf-8")
    assert f"ε is {result.summary['epsilon']:.4g} after 2 rounds, at δ = 1e-05 ({words})" in told
    assert f"ε ({words})" in page(result.folder).read_text(encoding="utf-8").replace("&#39;", "'")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"devices__preset": "phones"}, "schedule.sampling: poisson with devices.preset phones: in virtual time only"),
        ({"method__name": "centralized"}, "schedule.sampling: poisson is not possible with method centralized"),
    ],
)
def test_poisson_is_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        small_run(tmp_path / "run", POISSON, **options)


def test_privacy_loss_distributions_know_poisson_cohorts(tmp_path: Path) -> None:
    options = {**NOISE, "privacy__accountant": "pld"}
    small_run(tmp_path / "run", POISSON, **options)
    with pytest.raises(ConfigError, match=r"privacy.accountant: pld .* schedule.sampling to poisson"):
        small_run(tmp_path / "run", POISSON, schedule__sampling="fixed", **options)


def test_a_sampler_of_whose_cohorts_no_epsilon_is_known_gets_no_central_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Poisson, "neighbors", "")
    small_run(tmp_path / "run", POISSON, privacy__kind="local", privacy__noise_multiplier=1.0)
    with pytest.raises(ConfigError, match=r"privacy\.kind: central with schedule\.sampling poisson, of whose"):
        small_run(tmp_path / "run", POISSON, **NOISE)
