"""Runs with a robust rule in the place of the mean: what the server takes, what is refused, and resumed runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from raysim.config.wrappers import Attack, Compression, Defense
from raysim.errors import ConfigError
from raysim.methods.fedavg import FedAvg
from raysim.running.simulation import run
from raysim.wrappers.defense import check_defense
from raysim.wrappers.wrapped import Wrapped, running_method
from tests.raysim.methods.by_hand import context, updates
from tests.small_runs import small_run
from tests.wrapped_runs import BASE

VECTORS = ((0, 0), (2, 0), (0, 2), (2, 6), (200, -200))
SAMPLES = (1, 1, 1, 1, 4)


def step(defense: Defense, vectors: Sequence[tuple[float, float]] = VECTORS) -> list[float]:
    """What federated averaging adds to a model (10, 10), from five clients of which the last is far off."""
    method = Wrapped(FedAvg(), Attack(), Compression(), defense)
    server = method.aggregate(np.array([10, 10], np.float32), updates(vectors, SAMPLES), context())
    return list((server - 10).tolist())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rule": "median"}, [2, 0]),
        ({"rule": "trimmed-mean"}, [4 / 3, 2 / 3]),
        ({"rule": "krum"}, [0, 2]),
        ({"rule": "multi-krum"}, [1, 2]),
        # By samples, 1/8 each and 4/8: (0, 0), (2, 0), (0, 2), (2, 6) / √10 and (1, −1) √2.
        ({"rule": "norm-bound", "radius": 2.0}, [0.25 + 0.25 / 10**0.5 + 2**-0.5, 0.25 + 0.75 / 10**0.5 - 2**-0.5]),
        # From 0, all cut to the length 2, each a fifth.
        (
            {"rule": "centered-clipping", "radius": 2.0, "iterations": 1},
            [(2 + 2 / 10**0.5 + 2**0.5) / 5, (2 + 6 / 10**0.5 - 2**0.5) / 5],
        ),
        # The mean of the four nearest to each: (1, 2) three times at least, so also their median.
        ({"rule": "median", "before": "mixing"}, [1, 2]),
    ],
)
def test_rules_by_hand(options: dict[str, Any], expected: list[float]) -> None:
    assert step(Defense(**options)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rule": "krum"}, [0, 2]),
        ({"rule": "multi-krum"}, [1, 2]),
        ({"rule": "median"}, [1, 1]),
        # By samples of those that are left: a quarter each.
        ({"rule": "norm-bound", "radius": 100.0}, [1, 2]),
    ],
)
def test_an_update_that_is_not_finite_is_left_out(options: dict[str, Any], expected: list[float], bad: float) -> None:
    assert step(Defense(**options), [*VECTORS[:4], (bad, 0)]) == pytest.approx(expected, abs=1e-5)


def test_a_round_without_a_finite_update_shows_it() -> None:
    assert np.isnan(step(Defense(rule="krum"), [(np.nan, np.nan)] * 5)).all()


@pytest.mark.parametrize("model", ["logistic", "mobilenet"])
def test_margin_and_principal_rule_around_fedavg_are_fedld(tmp_path: Path, model: str) -> None:
    """Bit for bit, BatchNorm's statistics too."""
    base = BASE | {"model.name": model, "schedule.rounds": 3}
    if model == "mobilenet":  # with the default rate it diverges, on some processors to inf
        base |= {"model.width": 0.1, "training.learning_rate": 0.001}
    own = run(small_run(tmp_path / "own", base, method__name="fedld", method__share=0.6, method__margin_weight=0.1))
    options: dict[str, Any] = {"training__margin": 0.1, "defense__rule": "principal", "defense__axes": 0.6}
    built = run(small_run(tmp_path / "built", base, **options))
    plain = run(small_run(tmp_path / "plain", base, defense__rule="principal", defense__axes=0.6))
    assert built.rounds["loss"].tolist() == own.rounds["loss"].tolist() != plain.rounds["loss"].tolist()
    assert built.rounds["train_loss"].tolist() == own.rounds["train_loss"].tolist()
    models = [load_file(result.folder / "model.safetensors") for result in (own, built)]
    assert all(np.array_equal(values, models[1][name]) for name, values in models[0].items())


@pytest.mark.parametrize("method", ["fedavg", "moon", "fedcp", "fedpac", "fedproto", "fedprox", "perfedavg", "ditto"])
def test_margin_is_in_the_loss_of_every_method(tmp_path: Path, method: str) -> None:
    """Also where it takes cross-entropy by itself, and merges no single steps."""
    base = BASE | {"method.name": method, "model.name": "mlp", "schedule.rounds": 2}
    given = {"training.margin": 0.5, "training.margin_kind": "log"}
    plain, margin = (run(small_run(tmp_path / str(len(o)), base | o)) for o in ({}, given))
    assert plain.rounds["train_loss"].iloc[0] < margin.rounds["train_loss"].iloc[0]


def test_off_is_the_method_itself(tmp_path: Path) -> None:
    config = small_run(tmp_path, BASE)
    assert running_method(config) is config.method


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method__name": "scaffold", "defense__rule": "krum"}, "not possible with method scaffold, whose server"),
        ({"method__name": "centralized", "defense__rule": "krum"}, "which trains on all data in one place"),
        ({"defense__axes": 0.3}, "defense.axes: 0.3 has no effect with defense.rule none"),
        ({"defense__rule": "principal", "defense__before": "mixing"}, "defense.before: mixing has no effect"),
        ({"training__margin_kind": "log"}, "training.margin_kind: log has no effect with training.margin 0"),
        ({"defense__byzantine": 0.3}, "defense.byzantine: 0.3 has no effect with defense.rule none"),
        ({"defense__rule": "median", "defense__radius": 1.0}, "defense.radius: 1.0 has no effect"),
        ({"defense__rule": "krum", "defense__before": "bucketing", "defense__bucket_size": 3}, "product be below 0.5"),
        (
            {"defense__rule": "median", "devices__preset": "phones", "timing__mode": "async"},
            "with timing.mode async every server step takes one update",
        ),
        (
            {"defense__rule": "median", "devices__preset": "phones", "timing__mode": "buffered", "timing__buffer": 1},
            "with timing.buffer 1 every server step takes one update",
        ),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        small_run(tmp_path, BASE, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"defense__byzantine": 0.4, "workload__clients": 10}, "n = 10 of which f = 4 may be anything"),
        ({"defense__before": "bucketing", "defense__bucket_size": 2}, r"n > 2f \+ 2 buckets, .* n = 3 of which f = 1"),
        ({"devices__preset": "uniform", "timing__mode": "buffered", "timing__buffer": 2}, "n = 2 of which f = 0"),
    ],
)
def test_krum_outside_its_condition_is_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    base = BASE | {"schedule.sampling_rate": 1.0, "workload.clients": 6}
    check_defense(Defense(rule="multi-krum", byzantine=0.4), [11])  # 11 > 2 * 4 + 2
    with pytest.raises(ConfigError, match=reason):
        run(small_run(tmp_path, base, defense__rule="krum", **options))


@pytest.mark.parametrize(
    ("options", "steps", "reason"),
    [
        ({"rule": "trimmed-mean"}, [4], r"0\.2 of the 4 updates .* is none, .* Set it to 0\.25 or more"),
        ({"rule": "trimmed-mean", "byzantine": 0.1}, [3, 5, 8], r"0\.1 of the 8 updates .* Set it to 0\.125 or more"),
        ({"rule": "multi-krum"}, [4], r"no defense\. Let more clients take part\."),
        ({"rule": "median", "before": "mixing"}, [3], r"Set it to 0\.334 or more"),
        ({"rule": "trimmed-mean"}, [2], r"no defense\. Let more clients take part\."),
        ({"rule": "median", "before": "bucketing"}, [4], r"2 buckets of 4 updates .* median .* at most 1, for three"),
    ],
)
def test_a_rule_that_would_be_the_mean_is_refused(options: dict[str, Any], steps: list[int], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_defense(Defense(**options), steps)
    check_defense(Defense(**{"byzantine": 0.2, **options}), [*steps, 10])  # as later, when more have joined
    if options.get("before") != "bucketing":
        check_defense(Defense(**{**options, "byzantine": 0.0}), steps)


def test_rules_that_are_no_mean_of_two_buckets_are_not_refused() -> None:
    for rule in ("geometric-median", "centered-clipping"):
        check_defense(Defense(rule=rule, before="bucketing", bucket_size=9), [9])
