"""Values of options that their section refuses, by themselves and beside others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raysim.config.run_config import SECTIONS, Engine, RunConfig, Schedule, Training, default_config
from raysim.errors import ConfigError


def config(**sections: Any) -> RunConfig:
    return replace(default_config("fedavg"), **sections)


@pytest.mark.parametrize(
    ("section", "values", "wanted"),
    [
        ("training", {"learning_rate": 0.0}, "training.learning_rate: 0.0 .* > 0"),
        ("training", {"momentum": 1.0}, "training.momentum: 1.0 .* < 1"),
        ("training", {"batch_size": 0}, "training.batch_size: 0"),
        ("training", {"learning_rate_decay": 1.1}, "training.learning_rate_decay: 1.1"),
        ("training", {"steps_per_epoch": -1}, "training.steps_per_epoch: -1"),
        ("training", {"optimizer": "adamm"}, r"Did you mean adam.?\? Allowed: sgd \| adam \| adamw"),
        ("training", {"optimizer": "adam", "momentum": 0.9}, "momentum: 0.9 has no effect .* adam\\."),
        ("training", {"optimizer_state": "kept"}, "optimizer_state: kept has no effect .*training.momentum, 0.9 say"),
        ("training", {"optimizer_state": "batch"}, "optimizer_state: batch has no effect .* adam or adamw\\."),
        (
            "training",
            {"optimizer_state": "batch", "momentum": 0.9},
            "optimizer_state: batch has no effect with training.optimizer sgd",
        ),
        ("training", {"optimizer": "adamw", "momentum": 0.9}, "training.momentum: 0.9 has no effect"),
        ("schedule", {"rounds": 0}, "schedule.rounds: 0"),
        ("schedule", {"intervals": "Random"}, "schedule.intervals: 'Random'"),
        ("schedule", {"sampling_rate": 0.0}, "schedule.sampling_rate: 0.0"),
        ("schedule", {"joins": [3, 2]}, "schedule.joins"),
        ("schedule", {"joins": (3, 0), "join_every": 2}, r"schedule.joins: \[3, 0\]"),
        ("schedule", {"joins": (3, 2)}, "schedule.join_every: 0 with schedule.joins"),
        ("schedule", {"join_every": 5}, "schedule.join_every: 5 has no effect"),
        ("evaluation", {"client_limit": 0}, "evaluation.client_limit: 0"),
        ("engine", {"dashboard": 1}, "engine.dashboard: 1 .* true or false; default true"),
        ("engine", {"on_client_error": None}, "engine.on_client_error: None"),
        ("engine", {"address": "somewhere"}, "engine.address: 'somewhere'"),
        ("engine", {"gpus_per_client": 0.3}, r"Nearest: 1/4 = 0.25 and 1/3 = 0.333333\."),
        ("engine", {"gpus_per_client": 0.9}, r"Nearest: 1/2 = 0.5 and 1\."),
        ("engine", {"gpus_per_client": 1e-310}, r"whole k up to 10,000, .* Nearest: 0 and 1/10000 = 0\.0001\."),
        ("engine", {"gpus_per_client": 0.00007}, r"Nearest: 0 and 1/10000 = 0\.0001\."),
        ("engine", {"gpus_per_client": 1.6}, r"Nearest: 1 and 2\."),
    ],
)
def test_each_bad_value_is_refused(section: str, values: dict[str, Any], wanted: str) -> None:
    """tests/raysim/config/test_options.py has values of another type."""
    with pytest.raises(ConfigError, match=wanted):
        config(**{section: SECTIONS[section](**values)})


def test_kept_moments_of_sampled_clients_are_refused() -> None:
    training = Training(optimizer="adam", optimizer_state="kept")
    with pytest.raises(ConfigError, match=r"optimizer_state: kept with schedule\.sampling_rate 0\.5: .*Set schedule"):
        config(training=training, schedule=Schedule(sampling_rate=0.5))


def test_good_values_at_the_edges() -> None:
    config(training=Training(optimizer="adamw", optimizer_state="batch"), schedule=Schedule(sampling_rate=0.5))
    config(training=Training(momentum=0.9, optimizer_state="kept"))
    config(training=Training(learning_rate=1, momentum=0.99, optimizer="sgd", learning_rate_decay=1.0))
    config(schedule=Schedule(joins=(3, 2, 3, 2), join_every=200, sampling_rate=1.0))
    config(schedule=Schedule(joins=(3,)))
    for gpus in (0.0, 0.25, 0.2, 0.333, 1 / 3, 0.1667, 0.142857, 1e-4, 1.0, 2.0):
        config(engine=Engine(gpus_per_client=gpus))
    for address in ("auto", "local", "ray://head:10001", "10.0.0.1:6379"):
        config(engine=Engine(address=address))
