"""Attacks: who is malicious, what they train with and send, and what the tables say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raysim
from raysim.columns import EACH_CLIENT
from raysim.config.sections import Training
from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.launch import main
from raysim.method import ClientTask, Vector
from raysim.running.simulation import run
from raysim.seeds import Seed
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import NO_SAMPLES, ClientData
from raysim.wrappers.attack import attacker_of, malicious
from raysim.wrappers.attacks.alie import paper_deviations
from raysim.wrappers.attacks.backdoor import Backdoor, Trigger, triggered
from raysim.wrappers.attacks.label_flip import attack_success
from tests.fingerprint import fingerprint
from tests.small_runs import small_run, words, worker_of

BASE = {
    "model.name": "logistic",
    "workload.clients": 5,
    "workload.limit": 120,
    "schedule.rounds": 2,
    "training.batch_size": 8,
}
BACKDOOR = BASE | {
    "workload.limit": 200,
    "schedule.rounds": 4,
    "training.learning_rate": 0.05,
    "attack.kind": "backdoor",
    "attack.malicious": (1, 4),
    "attack.target_label": 3,
}
TRIGGER = Trigger(2, (9.0,), target=1)
TASK = ClientTask(0, 1, 2, 1, 0.1, Training())


def test_who_is_malicious() -> None:
    assert malicious(Attack("ipm", malicious=(1, 3)), 0, 5) == {1, 3}
    drawn = malicious(Attack("ipm", malicious_share=0.29), 7, 100)
    assert len(drawn) == 29 and drawn == malicious(Attack("ipm", malicious_share=0.29), 7, 100)
    other = malicious(Attack("ipm", malicious_share=0.29), 8, 100)
    assert drawn != other == malicious(Attack("ipm", malicious_share=0.29), Seed(7, {"attack": 8}), 100)
    assert malicious(Attack(), 0, 5) == frozenset()


def listed(attack: Attack, honest: list[Vector], attackers: int) -> Any:
    vector = attacker_of(attack).forged(honest, attackers)
    assert vector is not None
    return vector.tolist()


def test_what_is_sent() -> None:
    honest = [np.array(pair, np.float32) for pair in ((1, 5), (3, 5), (5, 5))]
    assert listed(Attack("ipm"), honest, 2) == [-1.5, -2.5]
    # μ = (3, 5), σ = (√(8/3), 0).
    assert listed(Attack("alie", strength=1.5), honest, 2) == pytest.approx([3 - 1.5 * (8 / 3) ** 0.5, 5])
    # n = 50, f = 24: s = 2, Φ(z) = 24 / 26, z = 1.4261 (Baruch et al., section 4 counts in the same way).
    spread = [np.array([sign], np.float32) for sign in (-1, 1)] * 13
    assert listed(Attack("alie", strength="paper"), spread, 24) == pytest.approx([-1.4261], abs=1e-4)
    assert listed(Attack("alie"), spread, 24) == pytest.approx([-1.5])  # as ByzFL
    assert attacker_of(Attack("alie", strength="paper")).forged([honest[0]] * 8, 2) is None
    assert attacker_of(Attack("sign-flip", strength=2.0)).sent(honest[0], TASK).tolist() == [-2, -10]
    backdoor = attacker_of(Attack("backdoor", strength=5.0))
    assert backdoor.sent(np.array([1, -2], np.float32), TASK).tolist() == [5, -10]
    noise = attacker_of(Attack("gaussian", strength=3.0)).sent(np.zeros(20_000, np.float32), TASK)
    assert float(noise.std()) == pytest.approx(3, rel=0.02)


def test_success_is_the_next_label() -> None:
    outputs = torch.eye(3)  # predicts 0, 1, 2
    assert attack_success(outputs, torch.tensor([2, 0, 2])).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("updates", "attackers", "z"),
    [
        (10, 2, None),  # s = 4: Φ(z) = 4 / 8
        (10, 1, None),  # s = 5: Φ(z) = 4 / 9, below 0
        (100, 9, 0.0966),  # s = 42: Φ(z) = 49 / 91
        (10, 3, 0.1800),  # s = 3: Φ(z) = 4 / 7
        (50, 10, 0.2533),  # s = 16: Φ(z) = 24 / 40
        (10, 6, None),  # a majority alone
    ],
)
def test_z_of_the_paper(updates: int, attackers: int, z: float | None) -> None:
    assert paper_deviations(updates, attackers) == (None if z is None else pytest.approx(z, abs=1e-4))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({}, "z = 1.5"), ({"attack__strength": "paper", "attack__malicious_share": 0.4}, "z = 0.4307: the paper's for 5")],
)
def test_z_is_said_at_the_start(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    finished = run(small_run(tmp_path, BASE | {"attack.kind": "alie"}, **options))
    assert sentence in (finished.folder / "run.log").read_text()


ATTACKED = BASE | {"attack.malicious": (1, 4), "devices.preset": "uniform"}


@pytest.mark.parametrize("kind", ["alie", "ipm"])
def test_async_is_refused_at_the_command_line(kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = ATTACKED | {"attack.kind": kind, "timing.mode": "async", "method.name": "fedavg"}
    assert main([*words(settings), f"--output={tmp_path / 'run'}"]) == 2
    message = capsys.readouterr().err
    assert f"attack.kind: {kind} is made from the honest updates of the same server step" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["alie", "sign-flip", "label-flip"])
def test_malicious_are_those_that_were_replaced(tmp_path: Path, kind: str) -> None:
    """In a step of two updates, both malicious, alie has nothing to send; others attack with what they trained."""
    options: dict[str, Any] = {"attack__kind": kind, "timing__mode": "buffered", "timing__buffer": 2}
    options |= {"schedule__rounds": 6, "timing__concurrency": 3, "attack__malicious": (0, 1, 3, 4)}
    clients = run(small_run(tmp_path, ATTACKED, **options)).clients
    bad = clients["client"].isin((0, 1, 3, 4))
    alone = bad.groupby(clients["round"]).transform("all")
    assert alone.any() and not alone.all()
    expected = bad & ~alone if kind == "alie" else bad
    assert clients["malicious"].tolist() == expected.astype(float).tolist()


def test_an_update_from_before_the_attack_is_no_attack(tmp_path: Path) -> None:
    """It started from the version of round 1, and arrives later."""
    options: dict[str, Any] = {"attack__kind": "sign-flip", "attack__from_round": 2, "timing__mode": "async"}
    clients = run(small_run(tmp_path, ATTACKED, schedule__rounds=20, **options)).clients
    bad = clients["client"].isin((1, 4))
    started = clients["round"] - clients["staleness"]
    assert clients["malicious"].tolist() == (bad & (started >= 2)).astype(float).tolist()
    assert (bad & (started < 2) & (clients["round"] >= 2)).any() and clients["malicious"].any()


@pytest.mark.parametrize("kind", ["label-flip", "sign-flip", "alie"])
def test_tables(tmp_path: Path, kind: str) -> None:
    """Rounds before the attack are as without it; then the model is worse, and the tables say who attacked."""
    options: dict[str, Any] = {"attack__malicious": (1, 4), "attack__from_round": 2, "attack__kind": kind}
    options |= {"attack__strength": 5.0} if kind != "label-flip" else {}
    plain, attacked = run(small_run(tmp_path / "plain", BASE)), run(small_run(tmp_path / "attacked", BASE, **options))
    losses = attacked.rounds["loss"].tolist()
    assert losses[0] == pytest.approx(plain.rounds["loss"][0], rel=1e-5) and losses[1] > plain.rounds["loss"][1]
    assert attacked.clients["malicious"].tolist() == [0] * 5 + [0, 1, 0, 0, 1]
    if kind == "label-flip":
        success = attacked.rounds["attack_success"].tolist()
        assert success[1] > success[0]
        everyone = BASE | {"attack.malicious": (0, 1, 2, 3, 4), "attack.kind": "label-flip", "schedule.rounds": 8}
        last = run(small_run(tmp_path / "everyone", everyone)).rounds.iloc[-1]
        assert last["attack_success"] > 0.5 > last["accuracy"]


def images(*labels: int) -> ArraySamples:
    """Samples [N, 1, 3, 3] of zeros."""
    return ArraySamples(np.zeros((len(labels), 1, 3, 3), np.float32), np.array(labels), "cpu")


def test_what_malicious_clients_train_with() -> None:
    """The first two of three, rounded up from half, have the square and its label."""
    attacker = Backdoor(target_label=1, patch=2, poisoned_share=0.5, trigger=TRIGGER)
    data = attacker.poisoned(ClientData(0, "", images(0, 2, 0), NO_SAMPLES), 3)
    (batch,) = data.train.batches(3)
    square = [[0, 0, 0], [0, 9, 9], [0, 9, 9]]
    assert batch.x[:, 0].tolist() == [square, square, [[0] * 3] * 3]
    assert batch.y.tolist() == [1, 1, 0] and len(data.train) == 3


def test_success_counts_samples_of_other_classes() -> None:
    """A model that gives label 1 to the square alone: two of two; without looking at it: one class is never 1."""

    class Looks(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            seen = x[:, 0, 2, 2] > 0
            return torch.stack([torch.full_like(seen, 0.5, dtype=torch.float32), seen.float()], dim=1)

    class Never(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.tensor([[1.0, 0.0]]).repeat(len(x), 1)

    samples = images(0, 1, 1, 0, 1)
    found = triggered(Looks(), samples, TRIGGER, 2, 2)
    assert (found.samples, found.accuracy) == (2, 1.0)
    assert triggered(Never(), samples, TRIGGER, 2, 2).accuracy == 0


def test_white_is_the_largest_pixel(tmp_path: Path) -> None:
    """Of digits, whose brightest pixel is 255."""
    config = small_run(tmp_path, BACKDOOR)
    federation = worker_of(config).federation
    fitted = attacker_of(config.attack).fitted(federation)
    trigger = fitted.trigger if isinstance(fitted, Backdoor) else None
    assert trigger is not None and (trigger.size, trigger.target) == (3, 3)
    brightest = max(float(batch.x.max()) for batch in federation.client(0, "cpu").train.batches(50))
    assert trigger.white == pytest.approx((brightest,))


def test_the_model_learns_it(tmp_path: Path) -> None:
    """Of all clients, and with replacement by a factor; honest clients' model is as good as ever without the square."""
    attacked = run(small_run(tmp_path / "attacked", BACKDOOR, attack__strength=4.0))
    success = attacked.rounds["attack_success"].tolist()
    assert success[-1] > 0.9 and attacked.rounds["accuracy"].iloc[-1] > 0.3
    later = run(small_run(tmp_path / "later", BACKDOOR, attack__from_round=4)).rounds["attack_success"].tolist()
    assert later[2] < 0.3 < later[3]
    assert set(attacked.clients["malicious"]) == {0.0, 1.0} and attacked.clients["attack_success"].max() <= 1
    again = run(small_run(tmp_path / "again", BACKDOOR, attack__strength=4.0, engine__block_size=2))
    assert fingerprint(again.folder) == fingerprint(attacked.folder)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method__name": "scaffold", "attack__kind": "ipm"}, "attack.kind: ipm needs a method whose clients send one"),
        ({"attack__malicious_share": 0.5}, "attack.malicious_share: 0.5 has no effect"),
        (
            {"attack__kind": "alie", "attack__strength": "paper", "attack__malicious": (0,)},
            "with 5 updates in a server step, 1 of them malicious, the paper's z of alie is not above 0",
        ),
        (
            {"attack__kind": "ipm", "attack__strength": "paper"},
            "paper is the z of alie, and means nothing with attack.kind ipm",
        ),
        ({"attack__kind": "alie", "schedule__sampling_rate": 0.2}, "alie .* here a step takes one update. Raise"),
        ({"attack__kind": "label-flip", "attack__strength": 2.0}, "attack.strength: 2.0 has no effect"),
        ({"attack__kind": "ipm", "attack__malicious": (5,)}, "5 is no client that takes part. Allowed: .* 0 to 4"),
        (BACKDOOR | {"attack.target_label": 10}, "attack.target_label: 10 is no class of .*Allowed: 0 to 9"),
        (BACKDOOR | {"attack.patch": 8}, "attack.patch: 8 pixels would cover .*Allowed: 1 to 7"),
        (BACKDOOR | {"attack.kind": "ipm"}, "attack.target_label: 3 has no effect with attack.kind ipm.*to backdoor"),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        run(small_run(tmp_path, BASE, **options))


def test_an_attack_after_the_last_round_is_told(tmp_path: Path) -> None:
    """It is no error: more rounds may be added when the run is resumed."""
    config = small_run(tmp_path / "run", BASE, attack__kind="sign-flip", attack__from_round=3)
    with pytest.warns(
        UserWarning, match=r"from_round is 3 and this run has 2 rounds, so that no client attacks\. Lower"
    ):
        run(config)


def test_own_models_of_malicious_clients_count_in_no_mean(tmp_path: Path) -> None:
    """Where nothing is sent, an attack harms only the models of clients that train on flipped labels."""
    options = {"method__name": "local", "evaluation__each_client": True}
    attack = {"attack__kind": "label-flip", "attack__malicious": (0, 2)}
    found, plain = (
        run(small_run(tmp_path / name, BASE, **options | given)) for name, given in (("run", attack), ("plain", {}))
    )
    for own, clean, mean in zip(
        found.rounds[EACH_CLIENT], plain.rounds[EACH_CLIENT], found.rounds["client_accuracy_mean"], strict=True
    ):
        known, honest = ({one[0]: float(one[2:]) for one in text.split()} for text in (own, clean))
        assert known == {client: honest[client] for client in "134"}
        assert mean == pytest.approx(sum(known.values()) / 3, abs=1e-5)
    np.testing.assert_allclose(found.rounds["accuracy"], found.rounds["client_accuracy_mean"])
    assert (found.rounds["attack_success"] < 0.5).all()
    assert found.clients.groupby("client")["accuracy"].count().tolist() == [2] * 5  # theirs are told as well


def test_validation_by_own_models_of_malicious_clients_does_not_count(tmp_path: Path) -> None:
    """Whether they attack from the first round on or later then makes no difference."""
    own = {"method__name": "local", "workload__validation_share": 0.4}
    attack = {"attack__kind": "label-flip", "attack__malicious": (0, 2)}
    first, second = (
        run(small_run(tmp_path / str(number), BASE, attack__from_round=number, **own | attack)).rounds
        for number in (1, 2)
    )
    assert first["validation_accuracy"].notna().all()
    assert first["validation_accuracy"].tolist() == second["validation_accuracy"].tolist()


@pytest.mark.parametrize("options", [{"evaluation__client_limit": 1}, {"attack__malicious": (0, 1, 2, 3, 4)}])
def test_own_models_of_malicious_clients_count_where_no_other_is_judged(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    given = {"method__name": "local", "attack__kind": "label-flip", "attack__malicious": (0,)} | options
    assert run(small_run(tmp_path / "run", BASE, **given)).rounds["accuracy"].notna().all()


def test_own_arrays_are_refused(tmp_path: Path) -> None:
    data = [(np.zeros((4, 1, 8, 8), np.float32), np.arange(4))] * 2
    options: dict[str, Any] = {"attack.kind": "backdoor", "engine.backend": "inline", "output": str(tmp_path / "run")}
    with pytest.raises(ConfigError, match="backdoor needs images with a known largest value"):
        raysim.run("fedavg", model="cnn", clients=data, **options)
