"""Small runs with wrappers around a method, mostly two at once, which tests stop, resume and run on Ray."""

from __future__ import annotations

from typing import Any

BASE = {
    "model.name": "logistic",
    "workload.clients": 6,
    "workload.limit": 120,
    "schedule.rounds": 4,
    "schedule.sampling_rate": 0.9,
    "training.batch_size": 8,
    "engine.checkpoint_every": 2,
}
WRAPPED: dict[str, dict[str, Any]] = {
    "a rule with buckets": {"defense__rule": "geometric-median", "defense__before": "bucketing"},
    "a rule after mixing, statistics of clients' own": {
        "method__name": "fedbn",
        "model__name": None,
        "defense__rule": "trimmed-mean",
        "defense__before": "mixing",
    },
    "a rule, in virtual time": {
        "defense__rule": "median",
        "devices__preset": "phones",
        "timing__mode": "buffered",
        "timing__buffer": 3,
    },
    "top-k, attack and defense": {
        "compression__kind": "top-k",
        "compression__kept_share": 0.1,
        "compression__error_feedback": True,
        "attack__kind": "alie",
        "attack__from_round": 2,
        "defense__rule": "median",
    },
    "low-rank with fed-back errors, top-k down": {
        "compression__kind": "low-rank",
        "compression__rank": 2,
        "compression__error_feedback": True,
        "compression__kept_share": 0.1,
        "compression__down": "top-k",
    },
    "backdoor and defense": {
        "attack__kind": "backdoor",
        "attack__strength": 5.0,
        "attack__from_round": 2,
        "defense__rule": "multi-krum",
    },
    "both ways": {"compression__kind": "top-k", "compression__kept_share": 0.1, "compression__down": "top-k"},
    "low-rank with fed-back errors, int8 down, in virtual time": {
        "compression__kind": "low-rank",
        "compression__rank": 2,
        "compression__error_feedback": True,
        "compression__down": "int8",
        "method__name": "fedadam",
        "devices__preset": "phones",
        "timing__mode": "buffered",
        "timing__buffer": 3,
    },
    "int8 and gaussian, in virtual time": {
        "compression__kind": "int8",
        "attack__kind": "gaussian",
        "devices__preset": "phones",
        "timing__mode": "buffered",
        "timing__buffer": 3,
    },
    "adaptive central noise, int8 both ways, sign flips": {
        "privacy__kind": "central",
        "privacy__noise_multiplier": 0.8,
        "privacy__clip_quantile": 0.5,
        "compression__kind": "int8",
        "compression__down": "int8",
        "compression__error_feedback": True,
        "attack__kind": "sign-flip",
        "schedule__sampling_rate": 0.9,
    },
    # Rounds of three, three, no and three clients.
    "adaptive central noise, Poisson cohorts, top-k down": {
        "privacy__kind": "central",
        "privacy__noise_multiplier": 0.8,
        "privacy__clip_quantile": 0.5,
        "compression__down": "top-k",
        "method__name": "fedavgm",
        "schedule__sampling": "poisson",
        "schedule__sampling_rate": 0.35,
        "seed": 3,
    },
    "cohorts by loss, of candidates, int8 down": {
        "schedule__sampling": "power-of-choice",
        "schedule__sampling_rate": 0.4,
        "compression__down": "int8",
        "method__name": "fedbn",
        "model__name": None,
    },
    "cohorts by loss and speed, a rule, in virtual time": {
        "schedule__sampling": "oort",
        "schedule__sampling_rate": 0.5,
        "defense__rule": "median",
        "devices__preset": "phones",
        "devices__drop_probability": 0.2,
    },
    "local noise, top-k, a rule, in virtual time": {
        "privacy__kind": "local",
        "privacy__epsilon": 50.0,
        "compression__kind": "top-k",
        "compression__kept_share": 0.2,
        "compression__error_feedback": True,
        "defense__rule": "median",
        "devices__preset": "phones",
        "timing__mode": "buffered",
        "timing__buffer": 3,
    },
    "dp-sgd, clients with heads of their own, a rule": {
        "method__name": "fedper",
        "model__name": "mlp",
        "privacy__kind": "dp-sgd",
        "privacy__noise_multiplier": 2.0,
        "training__batch_size": 3,
        "defense__rule": "trimmed-mean",
        "defense__byzantine": 0.34,
        "schedule__sampling_rate": 0.7,
    },
}
"""What each is, and its options over ``BASE``."""
