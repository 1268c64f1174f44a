"""Clipped updates and noise: what one client can change, how much noise there is, bounds by hand, and whole runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysim.cohort import Cohort
from raysim.config import registry
from raysim.config.privacy import Privacy
from raysim.config.run_config import RunConfig
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.engine.observer import Silent
from raysim.errors import ConfigError, RaysimError
from raysim.method import Update
from raysim.methods.fedavg import FedAvg
from raysim.results.newest_state import newest_state
from raysim.running.open_run import prepare
from raysim.running.simulation import execute, run
from raysim.storage.run_folder import RunFolder
from raysim.training import local_sgd
from raysim.wrappers.privacy import clipped, gaussian_noise, next_bound, private_round, shared_noise
from raysim.wrappers.wrapped import Wrapped
from tests import wrapped_runs
from tests.made_subgraphs import node_options
from tests.raysim.methods.by_hand import context, updates
from tests.small_runs import small_run, worker_of

BASE = wrapped_runs.BASE | {"schedule.sampling_rate": 1.0}
NUMBERS = st.floats(-1e6, 1e6, width=32)


def step(pairs: list[tuple[float, float]], cohort: int, privacy: Privacy, noise: float) -> Any:
    """What a server adds to a model (0, 0), from updates of clients with very different numbers of samples."""
    samples = [number**3 for number in range(1, len(pairs) + 1)]
    given = updates(pairs, samples, clipped=[0.0] * len(pairs))
    wrapped = Wrapped(FedAvg(), Attack(), Compression(), Defense(), privacy=privacy, noise=noise)
    told = context(cohort=Cohort(cohort, 1, cohort, 1, cohort))
    return wrapped.aggregate(np.zeros(2, np.float32), given, told)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=8), other=st.tuples(NUMBERS, NUMBERS))
def test_sensitivity(rows: list[tuple[float, float]], other: tuple[float, float]) -> None:
    """Without one client the sum moves by at most C, with another in its place by at most 2 C: all weigh the same."""
    bound, count = 0.5, len(rows)

    def total(pairs: list[tuple[float, float]]) -> Any:
        cut = [clipped(np.array(pair, np.float32), bound)[0] for pair in pairs]
        return count * step([(float(x), float(y)) for x, y in cut], count, Privacy("central", clip=bound), 0.0)

    whole, without, replaced = total(rows), total(rows[:-1]), total([*rows[:-1], other])
    assert np.linalg.norm(whole - without) <= bound * (1 + 1e-4)
    assert np.linalg.norm(whole - replaced) <= 2 * bound * (1 + 1e-4)


def test_clipping_by_hand() -> None:
    cut, shorter = clipped(np.array([3, -4], np.float32), 2.5)
    assert cut.tolist() == [1.5, -2] and shorter
    kept, shorter = clipped(np.array([3, -4], np.float32), 5)
    assert kept.tolist() == [3, -4] and not shorter
    # A sum of (1, 2) and (3, -6), divided by the four clients that were planned.
    assert step([(1, 2), (3, -6)], 4, Privacy("central", clip=10.0), 0.0).tolist() == [1, -1]


def test_noise_has_its_deviation() -> None:
    """Of n draws the variance lies within six standard errors, σ² √(2 / n); streams differ by round and client."""
    count, deviation = 200_000, 0.7
    noise = gaussian_noise(count, deviation, 0, 1)
    assert abs(float(noise.var()) - deviation**2) <= 6 * deviation**2 * (2 / count) ** 0.5
    assert abs(float(noise.mean())) <= 6 * deviation / count**0.5
    for other in (gaussian_noise(count, deviation, 0, 2), gaussian_noise(count, deviation, 0, 1, 3)):
        assert abs(float(np.corrcoef(noise, other)[0, 1])) <= 6 / count**0.5
    # z C / cohort on what the server adds: 1.5 · 2 / 4.
    moved = np.array([step([(0, 0)], 4, Privacy("central", clip=2.0), 1.5)])
    assert moved == pytest.approx(gaussian_noise(2, 0.75, 0, 1)[None], rel=1e-5)


def test_adaptive_bound_by_hand() -> None:
    privacy = Privacy("central", clip_quantile=0.5, clip_rate=0.2)
    # Three of four whole: b̃ = 3/4, C · exp(−0.2 · 1/4).
    assert next_bound(privacy, 2.0, 3 / 2 - 1 / 2, 4) == pytest.approx(2 * np.exp(-0.05))
    # Andrew et al. 2021, Theorem 1: z = 1, σ_b = 100 / 20 = 5 give z_Δ = (1 − 1/100)^−½; in small cohorts σ_b = z.
    assert shared_noise(1.0, 100) == pytest.approx((0.99**-0.5, 5.0))
    assert shared_noise(1.0, 10) == pytest.approx((0.75**-0.5, 1.0))
    assert shared_noise(0.0, 10) == (0.0, 0.0)


@pytest.mark.parametrize("bound", [0.0, 1e-39, 1e39, float("inf")])
def test_a_bound_that_is_no_float32_ends_the_run(bound: float) -> None:
    """With 0 neither updates nor noise counted, and the run went on."""
    wild = Privacy("central", clip_quantile=0.5, clip_rate=1000.0)
    assert next_bound(wild, 1.0, -4.0, 1) == pytest.approx(np.exp(700.0))
    with pytest.raises(RaysimError, match=r"round 1: the adaptive clipping bound is .* Lower privacy\.clip_rate or"):
        private_round(wild, 1.0, bound, updates([(0, 0)], (1,), clipped=[0.0]), context())


def test_the_bound_follows_the_quantile(tmp_path: Path) -> None:
    """From far too large a bound, without noise, to one that half of the updates are longer than."""
    options = {"privacy__kind": "central", "privacy__noise_multiplier": 0.0, "privacy__clip": 50.0}
    options |= {"privacy__clip_quantile": 0.5, "privacy__clip_rate": 2.0, "schedule__rounds": 9}
    result = run(small_run(tmp_path / "run", BASE, **options))
    bounds = result.rounds["clip_bound"].tolist()
    assert bounds[:3] == pytest.approx([50, 50 * np.exp(-1), 50 * np.exp(-2)])
    last = result.clients[result.clients["round"] > 6].groupby("round")["clipped"].mean()
    assert 0.2 < last.mean() < 0.8 and "epsilon" not in result.rounds


@pytest.mark.parametrize(("mode", "arrived"), [("over-select", 10), ("quorum", 8)])
def test_in_virtual_time_the_mean_is_that_of_a_planned_step(tmp_path: Path, mode: str, arrived: int) -> None:
    """Without noise, and with nothing to clip, it is the mean of the updates that the step takes."""
    options = {"workload__clients": 20, "schedule__sampling_rate": 0.5, "schedule__rounds": 1, "timing__mode": mode}
    options |= {"devices__preset": "phones", "workload__partition": "iid", "workload__limit": 400}
    private = {"privacy__kind": "central", "privacy__noise_multiplier": 0.0, "privacy__clip": 1e6}
    with_privacy, usual = (
        small_run(tmp_path / name, BASE, **options, **more) for name, more in (("private", private), ("usual", {}))
    )
    assert moved(with_privacy) == pytest.approx(moved(usual), rel=1e-4, abs=1e-6)
    assert len(RunFolder(tmp_path / "usual").clients()) == arrived


def moved(config: RunConfig) -> Any:
    """What a run has added to the first model."""
    folder, worker = RunFolder(run(config).folder), worker_of(config)
    return newest_state(folder, worker).server - worker.model(0).take_shared()


def test_the_server_bounds_what_was_decompressed(tmp_path: Path) -> None:
    """random-k makes an update √(d / k) times as long, so that the server cuts it once more."""
    options = {"privacy__kind": "central", "privacy__noise_multiplier": 0.0, "privacy__clip": 1e-3}
    config = small_run(tmp_path / "run", BASE, compression__kind="random-k", schedule__rounds=1, **options)
    assert 0 < np.linalg.norm(moved(config)) <= 1e-3 * 1.001


def test_a_client_s_noise_comes_before_compression(tmp_path: Path) -> None:
    """Of the noised update, of length z C √650, top-k sends 65 entries; nothing is added to the others."""
    options = {"privacy__kind": "local", "privacy__noise_multiplier": 5.0, "compression__kind": "top-k"}
    options |= {"compression__kept_share": 0.1, "schedule__rounds": 1, "schedule__sampling_rate": 0.1}
    change = moved(small_run(tmp_path / "run", BASE, **options))
    assert np.count_nonzero(change) == 65 and np.abs(change[change != 0]).min() > 5.0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy__clip": 2.0}, "privacy.clip: 2.0 has no effect with privacy.kind none"),
        (
            {"privacy__kind": "local", "privacy__noise_multiplier": 0.0, "privacy__delta": 1e-6},
            "privacy.delta: 1e-06 has no effect with privacy.noise_multiplier 0",
        ),
        ({"privacy__kind": "central"}, "nothing says how much noise privacy.kind central adds"),
        ({"privacy__kind": "local", "privacy__noise_multiplier": 1.0, "privacy__epsilon": 8.0}, "follows from the oth"),
        (
            {"privacy__kind": "local", "privacy__noise_multiplier": 1.0, "privacy__clip_quantile": 0.5},
            "privacy.clip_quantile: 0.5 needs a server that adds noise",
        ),
        (
            {"privacy__clip_rate": 0.1, "privacy__kind": "central", "privacy__noise_multiplier": 1.0},
            "no effect with privacy.clip_quantile null. Leave it out, or set privacy.clip_quantile, 0.5 say",
        ),
        ({"defense__rule": "median", "privacy__kind": "central", "privacy__epsilon": 8.0}, "median takes none. Set"),
        ({"attack__kind": "alie", "privacy__kind": "central", "privacy__epsilon": 8.0}, "so that ε would be wrong"),
        (
            {
                "devices__preset": "phones",
                "timing__mode": "buffered",
                "privacy__kind": "central",
                "privacy__epsilon": 8.0,
            },
            "a step weighs updates of several rounds by their staleness",
        ),
        (
            {
                "privacy__kind": "central",
                "privacy__epsilon": 8.0,
                "privacy__accountant": "pld",
                "schedule__sampling_rate": 0.5,
            },
            "no privacy loss distribution of a cohort of fixed size",
        ),
        ({"method__name": "scaffold", "privacy__kind": "local", "privacy__epsilon": 8.0}, "not possible with method"),
        ({"method__name": "moon", "privacy__kind": "dp-sgd", "privacy__epsilon": 8.0}, "asks more of the samples"),
        (
            {"training__precision": "bf16", "privacy__kind": "dp-sgd", "privacy__epsilon": 8.0},
            "training.precision: bf16 is not possible with privacy.kind dp-sgd",
        ),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        small_run(tmp_path, BASE | {"model.name": None}, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy__kind": "central"}, "shares .*running_mean, which is no parameter: .* --norm group"),
        ({"privacy__kind": "dp-sgd", "model__norm": "group", "workload__samples_per_client": 40}, "copies of samples"),
        ({"privacy__kind": "local", "model__norm": "group", "workload__samples_per_client": 40}, "copies of samples"),
        (
            {"privacy__kind": "dp-sgd", "model__norm": "group", "workload__partition": "views"},
            "views, where several clients have the same sample",
        ),
        ({"privacy__kind": "central", "model__norm": "group", "privacy__epsilon": 1e6}, "such as 8, or set"),
    ],
)
def test_refused_by_model_or_data(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    config = small_run(tmp_path / "run", BASE | {"model.name": "resnet18"}, **({"privacy__epsilon": 8.0} | options))
    outcome = execute(config, prepare(config), Silent())
    assert outcome.refused and not (tmp_path / "run").exists()
    with pytest.raises(RaysimError, match=reason):
        raise RaysimError(outcome.message)


def test_batch_norm_is_refused_before_the_run_has_a_folder(tmp_path: Path) -> None:
    private = {"privacy__kind": "dp-sgd", "privacy__epsilon": 8.0}
    config = small_run(tmp_path / "run", BASE | {"model.name": "resnet18"}, **private)
    with pytest.raises(ConfigError, match=r"whose BatchNorm mixes the samples of a batch: .* --norm group"):
        prepare(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("exchange", ["one_hop", "two_hops", "samples"])
def test_features_that_clients_exchange_have_no_noise(tmp_path: Path, exchange: str) -> None:
    """They leave their client as they are: no ε is claimed; without noise, or without an exchange, the run goes on."""
    nodes = {"schedule.rounds": 1} | node_options(".") | {"workload.clients": 2, "method.name": "fedgcn"}
    private = {"privacy__kind": "local", "privacy__noise_multiplier": 1.0}
    config = small_run(tmp_path / "run", nodes | {"workload.exchange": exchange}, **private)
    with pytest.raises(ConfigError, match=r"before them they exchange features as they are, .* workload.exchange"):
        prepare(config)
    assert not (tmp_path / "run").exists()
    run(small_run(tmp_path / "none", nodes, **private))
    clipped_alone = private | {"privacy__noise_multiplier": 0.0, "workload__exchange": exchange}
    run(small_run(tmp_path / "clipped", nodes, **clipped_alone))


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    small_run(tmp_path, BASE, privacy__kind="central", privacy__noise_multiplier=0.0)
    with pytest.raises(ConfigError, match=r"which is not installed. Install it with pip install dp-accounting"):
        small_run(tmp_path, BASE, privacy__kind="central", privacy__noise_multiplier=1.0)


def test_steps_that_are_not_counted(tmp_path: Path) -> None:
    """A method that says that it trains once, and trains twice."""
    config = small_run(tmp_path / "run", BASE, privacy__kind="dp-sgd", privacy__noise_multiplier=1.0)
    object.__setattr__(config, "method", Twice())
    with pytest.raises(Exception, match=r"reports \d+.0 steps of local training instead of \d+, so"):
        run(config)


PLAIN = [name for name in registry.known("method") if registry.resolve("method", name)().traits.plain_training]
ONE_ROUND = {"model.name": "mlp", "privacy.kind": "dp-sgd", "privacy.noise_multiplier": 1.0, "schedule.rounds": 1}


@pytest.mark.parametrize("method", PLAIN)
@pytest.mark.filterwarnings("ignore:the model has no BatchNorm layer")
def test_a_method_that_says_that_it_trains_once_does(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, whole = list[str](), local_sgd.train_epochs

    def counted(*given: Any, **named: Any) -> local_sgd.Trained:
        calls.append(method)
        return whole(*given, **named)

    monkeypatch.setattr(local_sgd, "train_epochs", counted)
    clients = run(small_run(tmp_path / "run", BASE | ONE_ROUND, method__name=method)).clients
    assert len(calls) == len(clients) == 6


@dataclass(frozen=True)
class Twice(FedAvg):
    def train(self, model: Any, data: Any, message: Any, state: None, task: Any) -> tuple[Update, None]:
        first, second = (FedAvg.train(self, model, data, message, state, task)[0] for _ in range(2))
        steps = first.metrics["steps"] + second.metrics["steps"]
        return Update(second.delta, {**second.metrics, "steps": steps}), None


def test_noise_that_was_found_is_for_the_planned_rounds(tmp_path: Path) -> None:
    config = small_run(tmp_path / "run", BASE, privacy__kind="local", privacy__epsilon=20.0)
    folder = run(config).folder
    longer = small_run(tmp_path / "run", BASE, privacy__kind="local", privacy__epsilon=20.0, schedule__rounds=6)
    with pytest.raises(Exception, match=r"schedule.rounds 6 is not possible for this run"):
        run(longer, resume=folder)
    assert "privacy.noise_multiplier" in (folder / "run.log").read_text()
