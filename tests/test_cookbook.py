"""The methods of docs/cookbook.md: their numbers by hand, a run of each, and the page that shows their code."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from examples import fedcm, mimelite
from examples.feddisco import FedDisco
from examples.fedsam import FedSAM
from raysim.launch import main
from raysim.method import Message, Update, Updates
from raysim.workloads.arrays.array_samples import ArraySamples
from raysim.workloads.federated_data import ClientData
from tests.fingerprint import fingerprint
from tests.raysim.methods.by_hand import context, linear, one_sample, sigmoid, updates
from tests.small_runs import IN_PROCESS, LOGISTIC, words

ROOT = Path(__file__).resolve().parents[1]
METHODS = {"fedcm": "FedCM", "fedsam": "FedSAM", "feddisco": "FedDisco", "mimelite": "MimeLite"}
SMALL = words({path: value for path, value in (IN_PROCESS | LOGISTIC).items() if path != "method.name"})


def vector(*values: float) -> Any:
    return np.array(values, np.float32)


def two_mixed_steps(share: float, direction: tuple[float, float]) -> list[float]:
    """Two steps of rate 1/2 from (0, 0) along share · g + (1 − share) · direction.

    Logits (w0, w1), label 0: the gradient is (−q, q), q = sigmoid(w1 − w0). The first is (−1/2, 1/2).
    """
    w0 = w1 = 0.0
    for _ in range(2):
        q = sigmoid(w1 - w0)
        w0 -= 0.5 * (-share * q + (1 - share) * direction[0])
        w1 -= 0.5 * (share * q + (1 - share) * direction[1])
    return [w0, w1]


def test_a_client_task_of_fedcm_by_hand() -> None:
    # Step 1: 1/4 · (-1/2, 1/2) + 3/4 · (1, -2) = (5/8, -11/8), so w = (-5/16, 11/16); q of step 2 is sigmoid(1).
    task, data = one_sample(2)
    method = fedcm.FedCM(alpha=0.25)
    update, _ = method.train(linear(method), data, Message(vector(0, 0), {"direction": vector(1, -2)}), None, task)
    second = [0.75 - sigmoid(1) / 4, sigmoid(1) / 4 - 1.5]
    expected = [-5 / 16 - second[0] / 2, 11 / 16 - second[1] / 2]
    assert update.delta == pytest.approx(expected, abs=1e-6)
    assert expected == pytest.approx(two_mixed_steps(0.25, (1, -2)))


def test_a_server_step_of_fedcm_by_hand() -> None:
    # Two parameters and a buffer. Plain mean (1, -2, 4); 4 steps in the mean at rate 0.1: Δ = -(1, -2) / 0.4.
    server = fedcm.Server(vector(10, 20, 30), vector(7, 7))
    given = updates([[3, -1, 6], [-1, -3, 2]], [1, 1], steps=[2, 6])
    after = fedcm.FedCM().aggregate(server, given, context())
    assert after.parameters == pytest.approx([11, 18, 34])
    assert after.direction == pytest.approx([-2.5, 5])


def test_a_client_task_of_fedsam_by_hand() -> None:
    # (-1, 1)/√2 is uphill, so ρ = √2 shifts by (-1, 1), where w0 - w1 is less by 2, and q = sigmoid(2 - (w0 - w1)).
    task, data = one_sample(2)
    method = FedSAM(radius=float(np.sqrt(2)))
    update, _ = method.train(linear(method), data, Message(vector(0, 0)), None, task)
    first = sigmoid(2) / 2
    second = sigmoid(2 - 2 * first) / 2
    assert update.delta == pytest.approx([first + second, -first - second], abs=1e-6)
    assert update.metrics["train_loss"] == pytest.approx(-np.log(sigmoid(2 * first))), "at w, not at the shifted point"
    given = updates([[3, -1], [-1, -3]], [1, 1])
    assert method.aggregate(vector(10, 20), given, context()).tolist() == [11, 18]


def counted(counts: list[list[int]], samples: list[int]) -> Updates:
    given = updates([[4, -8], [-2, 1]], samples)
    each = [
        replace(update, extra={"class_counts": np.array(row)}) for update, row in zip(given.each, counts, strict=True)
    ]
    return replace(given, each=tuple(each))


def test_a_server_step_of_feddisco_by_hand() -> None:
    # T = (4, 12)/16. D_1 = (3, 1)/4 is (1/2, -1/2) away: d = √2/2; D_2 = (1, 11)/12 is (-1/6, 1/6) away: d = √2/6.
    # n = (1/4, 3/4); a = 1/5, b = 1/10: terms 0.35 - √2/10 and 0.85 - √2/30.
    first, second = 0.35 - np.sqrt(2) / 10, 0.85 - np.sqrt(2) / 30
    p = np.array([first, second]) / (first + second)
    told, given = context(), counted([[3, 1], [1, 11]], [4, 12])
    after = FedDisco(a=0.2).aggregate(vector(1, 1), given, told)
    assert after == pytest.approx([1 + 4 * p[0] - 2 * p[1], 1 - 8 * p[0] + p[1]], abs=1e-6)
    assert told.report.client_columns["weight"] == pytest.approx(p)
    # a = 1/2: the first term 0.35 - √2/4 is negative, and counts as 0.
    assert FedDisco().aggregate(vector(1, 1), given, context()).tolist() == [-1, 2]
    # a = 9, b = 0: no term is positive, so weights are by samples.
    assert FedDisco(a=9.0, b=0.0).aggregate(vector(0, 0), given, context()).tolist() == [-0.5, -1.25]


def test_a_client_task_of_feddisco_sends_its_class_counts() -> None:
    task, data = one_sample(1)
    train = ArraySamples(np.ones((5, 1), np.float32), np.array([1, 0, 1, 1, 1]), "cpu")
    method = FedDisco()
    update, _ = method.train(linear(method), ClientData(1, "one", train, data.test), Message(vector(0, 0)), None, task)
    assert update.extra["class_counts"].tolist() == [1, 4]
    assert update.delta.any() and update.metrics["steps"] == 1


def test_a_client_task_of_mimelite_by_hand() -> None:
    """The steps are those of FedCM with β = 1 − α; the full gradient is that at x, not where training ends."""
    task, data = one_sample(2)
    method = mimelite.MimeLite(beta=0.75)
    update, _ = method.train(linear(method), data, Message(vector(0, 0), {"momentum": vector(1, -2)}), None, task)
    assert update.delta == pytest.approx(two_mixed_steps(0.25, (1, -2)), abs=1e-6)
    assert update.extra["gradient"].tolist() == [-0.5, 0.5]


def test_a_server_step_of_mimelite_by_hand() -> None:
    # Plain means whatever the samples: (1, -2, 4), and of the gradients (3, -2). s = 1/4 · (3, -2) + 3/4 · (1, 2).
    pairs = [([3, -1, 6], [2, -4]), ([-1, -3, 2], [4, 0])]
    each = tuple(Update(vector(*delta), {}, {"gradient": vector(*gradient)}) for delta, gradient in pairs)
    server = mimelite.Server(vector(10, 20, 30), vector(1, 2))
    after = mimelite.MimeLite(beta=0.75).aggregate(server, Updates((1, 4), np.array([10, 90]), each), context())
    assert after.parameters == pytest.approx([11, 18, 34])
    assert after.momentum == pytest.approx([1.5, 1])


@pytest.mark.parametrize("name", METHODS)
def test_it_runs_by_its_name_and_learns(tmp_path: Path, name: str) -> None:
    """The command of its docstring, without Ray; a second run has the same bits."""
    start = [*SMALL, f"--method=examples.{name}:{METHODS[name]}", "--partition=dirichlet"]
    for folder in ("one", "two"):
        assert main([*start, "--learning_rate=0.05", f"--output={tmp_path / folder}"]) == 0
    losses = pd.read_csv(tmp_path / "one" / "rounds.csv")["loss"]
    assert losses.iloc[-1] < losses.iloc[0]
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")


@pytest.mark.parametrize("given", [("--privacy.kind=local", "--noise_multiplier=1"), ("--compression.kind=top-k",)])
def test_class_counts_go_with_no_noise_and_no_compression(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...]
) -> None:
    """As the page says: both are for clients that send one vector."""
    assert main([*SMALL, "--method=examples.feddisco:FedDisco", *given, "--print-config"]) == 2
    assert "whose clients send more than that" in capsys.readouterr().err


def code_of(name: str) -> str:
    """What the page shows of a file: the head of the class, and its functions from ``message`` or ``train`` on."""
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    (found,) = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == METHODS[name]]
    functions = [node for node in found.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("init")]
    lines = text.splitlines()
    return "\n".join([lines[found.lineno - 1], *lines[functions[0].lineno - 1 : functions[-1].end_lineno]])


@pytest.mark.parametrize("name", METHODS)
def test_the_page_shows_the_code_of_the_file(name: str) -> None:
    page = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    code = code_of(name)
    assert f"```python\n{code}\n```\n" in page
    assert f"(../examples/{name}.py)" in page
    assert len([line for line in code.splitlines() if line]) <= 26
