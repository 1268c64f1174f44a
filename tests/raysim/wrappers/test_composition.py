"""Wrappers around every method: what is accepted is what the page says, and composes as if written by hand."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from raysim.config import registry
from raysim.config.wrappers import Attack, Compression, Defense
from raysim.errors import ConfigError, RaysimError
from raysim.method import Traits, Update
from raysim.methods.fedavg import FedAvg
from raysim.methods.feddyn import FedDyn
from raysim.running.simulation import run
from raysim.wrappers.compression import Broadcast
from raysim.wrappers.wrapped import Wrapped
from tests.fingerprint import fingerprint
from tests.raysim.methods.by_hand import context, updates
from tests.small_runs import small_run

PAGE = Path(__file__).parents[3] / "docs" / "wrappers.md"
WRAPPERS: tuple[dict[str, dict[str, Any]], ...] = (
    {"label-flip": {"attack.kind": "label-flip"}},
    {
        "sign-flip": {"attack.kind": "sign-flip"},
        "alie": {"attack.kind": "alie"},
        "gaussian": {"attack.kind": "gaussian"},
        "backdoor": {"attack.kind": "backdoor"},
        "top-k": {"compression.kind": "top-k"},
        "int8, fed back": {"compression.kind": "int8", "compression.error_feedback": True},
    },
    {"local": {"privacy.kind": "local", "privacy.noise_multiplier": 1.0}},
    {"int8 down": {"compression.down": "int8"}},
    {
        "median": {"defense.rule": "median"},
        "central": {"privacy.kind": "central", "privacy.noise_multiplier": 1.0},
    },
)
"""By the columns of the page's table."""


def listed() -> dict[str, list[bool]]:
    """What the page says of each method, by columns."""
    text = PAGE.read_text().split("## Which go with which method")[1].split("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {name: [cell == "yes" for cell in cells] for first, *cells in rows[2:] for name in first.split(", ")}


def test_every_method_is_listed() -> None:
    assert set(listed()) == set(registry.known("method"))


@pytest.mark.parametrize("method", registry.known("method"))
def test_accepted_as_the_page_says_or_refused_with_a_sentence(tmp_path: Path, method: str) -> None:
    for column, expected in zip(WRAPPERS, listed()[method], strict=True):
        for options in column.values():
            try:
                small_run(tmp_path, {"method.name": method, **options})
                accepted = True
            except ConfigError as error:
                accepted = False
                assert f"method {method}" in str(error) and str(error).endswith((".", ")"))
            assert accepted == expected, (method, options)


BASE = {
    "model.name": "logistic",
    "workload.clients": 5,
    "workload.limit": 150,
    "schedule.rounds": 3,
    "schedule.sampling_rate": 0.8,
    "training.batch_size": 8,
}
SPLITS = {"method.quiet_rounds": 1, "method.small_mean": 1e9, "method.large_update": 0.0}
ONE_VECTOR: dict[str, dict[str, Any]] = {
    "fednova": {},
    "feddyn": {},
    "fedgh": {},
    "fedld": {},
    "qfedavg": {},
    "fedrad": {},
    "clustered": SPLITS,
    "ifca": {},
}


def by_hand(method: Any) -> Any:
    """The method, whose clients send a tenth of their change: the largest entries."""

    @dataclass(frozen=True)
    class ByHand(type(method)):  # type: ignore[misc]
        def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> tuple[Update, Any]:
            update, after = super().train(model, data, message, state, task)
            kept = np.argsort(np.abs(update.delta))[-max(1, -(-update.delta.size // 10)) :]
            sent = np.zeros_like(update.delta)
            sent[kept] = update.delta[kept]
            return replace(update, delta=sent), after

    return ByHand(**{field.name: getattr(method, field.name) for field in fields(method)})


@pytest.mark.parametrize("method", ONE_VECTOR)
def test_compressed_as_by_hand(tmp_path: Path, method: str) -> None:
    options = BASE | ONE_VECTOR[method] | {"method.name": method}
    plain = small_run(tmp_path / "hand", options)
    hand = run(replace(plain, method=by_hand(plain.method)))
    coded = {"compression.kind": "top-k", "compression.kept_share": 0.1}
    wrapped = run(small_run(tmp_path / "wrapped", options | coded))
    assert fingerprint(wrapped.folder)["server"] == fingerprint(hand.folder)["server"]
    assert wrapped.rounds["loss"].tolist() == hand.rounds["loss"].tolist()
    assert wrapped.rounds["bytes_up"].sum() < hand.rounds["bytes_up"].sum()


@pytest.mark.parametrize("method", ONE_VECTOR)
def test_two_chunkings_have_the_same_bits(tmp_path: Path, method: str) -> None:
    """All that acts on what one client sends, at once."""
    options = BASE | ONE_VECTOR[method] | {"method.name": method, "attack.kind": "sign-flip"}
    options |= {"compression.kind": "top-k", "compression.kept_share": 0.2, "compression.error_feedback": True}
    if listed()[method][2]:
        options |= {"privacy.kind": "local", "privacy.noise_multiplier": 0.1}
    first, second = (
        fingerprint(run(small_run(tmp_path / str(size), options, engine__block_size=size)).folder) for size in (1, 4)
    )
    assert first == second
    plain = fingerprint(run(small_run(tmp_path / "plain", BASE | ONE_VECTOR[method] | {"method.name": method})).folder)
    assert plain["server"] != first["server"]


def test_stale_updates_of_attackers_are_replaced_as_they_were_before_their_weights() -> None:
    """FedDyn's h takes the changes without weights: of client 1, −ε times the honest (4, 8), ε = 1."""
    method = Wrapped(FedDyn(alpha=1.0), Attack("ipm", malicious=(1,), strength=1.0), Compression(), Defense())
    given = updates(((2, 4), (9, 9)), (1, 1))
    given = replace(given, unweighted=tuple(np.array(pair, np.float32) for pair in ((4, 8), (18, 18))))
    seen = method._forged(given, context())
    assert [delta.tolist() for delta in seen.deltas] == [[2, 4], [-2, -4]]
    assert [change.tolist() for change in seen.changes] == [[4, 8], [-4, -8]]


class Talkative(FedAvg):
    """Declares one vector, and sends another beside it."""

    def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> tuple[Update, Any]:
        update, after = super().train(model, data, message, state, task)
        return replace(update, extra={"secret": update.delta}), after


def test_a_method_that_sends_more_than_it_declares_is_told(tmp_path: Path) -> None:
    config = small_run(tmp_path, BASE | {"compression.kind": "top-k"})
    with pytest.raises(RaysimError, match=r"one_vector=True.*also send secret"):
        run(replace(config, method=Talkative()))


class Short(FedAvg):
    """Returns an update that lacks an entry, or a list."""

    listed = False

    def train(self, model: Any, data: Any, message: Any, state: Any, task: Any) -> tuple[Update, Any]:
        update, after = super().train(model, data, message, state, task)
        delta: Any = update.delta.tolist() if self.listed else update.delta[1:]
        return replace(update, delta=delta), after


class Listed(Short):
    listed = True


@pytest.mark.parametrize("method", [Short(), Listed()])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression.kind": "top-k"},
        {"privacy.kind": "local", "privacy.noise_multiplier": 1.0},
        {"attack.kind": "sign-flip", "attack.malicious_share": 0.9},
    ],
)
def test_a_wrong_update_is_told_with_wrappers_as_without(
    tmp_path: Path, method: FedAvg, options: dict[str, Any]
) -> None:
    with pytest.raises(RaysimError, match=r"client 0, round 1, stage update: Update\.delta is "):
        run(replace(small_run(tmp_path, BASE | options), method=method))


@dataclass(frozen=True)
class Starts(FedAvg):
    """Federated averaging whose model becomes the mean of what clients started from; also of no client."""

    traits: ClassVar[Traits] = replace(FedAvg.traits, weighted_mean=False, empty_rounds=True)

    def aggregate(self, server: Any, updates: Any, context: Any) -> Any:
        return np.mean(updates.bases, axis=0) if updates.clients else server


def test_a_method_is_told_the_model_that_clients_start_from_where_it_is_compressed() -> None:
    """FedRAD takes the weight decay of that model out of its gradient: it took that of the server's, unsent one."""
    method = Wrapped(Starts(), Attack(), Compression(down="int8"), Defense())
    wanted, held = np.array([1.0, 1.0], np.float32), np.array([0.5, 0.0], np.float32)
    after = method.aggregate(Broadcast(wanted, held, 0), updates([(0, 0), (1, 1)], (1, 1)), context())
    assert after.method.tolist() == held.tolist()


def test_a_round_without_clients_has_no_rule() -> None:
    method = Wrapped(Starts(), Attack(), Compression(), Defense("median"))
    assert method.aggregate(np.ones(2, np.float32), updates([], ()), context()).tolist() == [1.0, 1.0]
