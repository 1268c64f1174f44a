"""Returns and reports of a method that cannot be used are told in a sentence that names the part, not a traceback."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import raysim
from raysim.method import Context, Message, Update
from raysim.methods.fedavg import FedAvg
from raysim.methods.local import Local
from tests.own_data import QUICK, seeded, three_clients

LOCK: Any = threading.Lock()
TENSOR: Any = torch.zeros(3)
A_LIST: Any = [0.5]
BY_NUMBER: Any = {1: 1.0}
SIZE = sum(parameter.numel() for parameter in seeded().parameters())
NEITHER = "a value of type {} can neither be sent nor saved; use numpy arrays, numbers, text, dataclasses"


def changed(change: Callable[[Update], Any]) -> FedAvg:
    """FedAvg whose updates are changed after training."""

    class Changed(FedAvg):
        def train(self, *given: Any) -> Any:
            update, state = super().train(*given)
            return change(update), state

    return Changed()


def measuring(**metrics: Any) -> Callable[[Update], Update]:
    """Adds metrics to those of an update."""
    return lambda update: replace(update, metrics={**update.metrics, **metrics})


def with_delta(change: Callable[[Any], Any]) -> Callable[[Update], Update]:
    """Changes the delta of an update."""
    return lambda update: replace(update, delta=change(update.delta))


def reporting(place: str, name: Any, value: Any) -> FedAvg:
    """FedAvg that reports a column of the round or of its clients."""

    class Reports(FedAvg):
        def aggregate(self, server: Any, updates: Any, context: Context) -> Any:
            getattr(context.report, place)(name, value)
            return super().aggregate(server, updates, context)

    return Reports()


class KeepsALock(Local):
    def train(self, *given: Any) -> Any:
        return super().train(*given)[0], {"lock": LOCK}


class SendsALock(FedAvg):
    def message(self, server: Any, client: int) -> Message:
        return replace(super().message(server, client), extra={"lock": LOCK})


UPDATES: dict[str, tuple[Callable[[Update], Any], str]] = {
    "a lock deep in extra": (
        lambda update: replace(update, extra={"own": [0, {"lock": LOCK}]}),
        f"Update.extra.own[1].lock: {NEITHER.format('lock')}",
    ),
    "a function": (lambda update: replace(update, extra={"f": len}), "Update.extra.f: a value of type builtin_func"),
    "a tensor": (lambda update: replace(update, extra={"z": TENSOR}), "Update.extra.z: a value of type Tensor"),
    "a metric": (
        lambda update: replace(update, metrics={"train_loss": 0.0, "own": LOCK}),
        f"Update.metrics.own: {NEITHER.format('lock')}",
    ),
    "metrics that are none": (
        lambda update: replace(update, metrics=A_LIST),
        "Update.metrics is a list, not a dict of numbers by name",
    ),
    **{
        f"the metric {name}": (measuring(**{name: 1.0}), f"Update.metrics: {name} is a column that the run makes")
        for name in (
            "round",
            "client",
            "name",
            "samples",
            "loss",
            "accuracy",
            "seconds_task",
            "arrived",
            "neighbors",
            "stage",
        )
    },
    "a metric without a name": (
        measuring(**{"own loss": 1.0}),
        "Update.metrics: 'own loss' is no name of a column. Allowed: letters, digits and _, as own_loss",
    ),
    "a metric by number": (lambda update: replace(update, metrics=BY_NUMBER), "Update.metrics: 1 is no name"),
    "an array as metric": (
        measuring(norms=np.arange(2.0)),
        "Update.metrics: norms is a value of type ndarray of shape (2,), not a number. Allowed: int, float or a",
    ),
    **{
        f"{value!r} as metric": (
            measuring(own=value),
            f"Update.metrics: own is a value of type {type(value).__name__}, not a number",
        )
        for value in ("x", {"a": 1.0}, None, True, np.bool_(True), np.complex64(1))
    },
    "a tensor as delta": (
        lambda update: replace(update, delta=TENSOR),
        "Update.delta is a Tensor, not a numpy array of float32",
    ),
    **{
        f"a delta {name}": (
            with_delta(change),
            f"Update.delta is {found}; expected float32 of shape ({SIZE},), one number for each shared entry",
        )
        for name, change, found in (
            ("of one number", lambda delta: delta.mean(keepdims=True), "float32 of shape (1,)"),
            ("cut short", lambda delta: delta[:-1], f"float32 of shape ({SIZE - 1},)"),
            ("as a column", lambda delta: delta[:, None], f"float32 of shape ({SIZE}, 1)"),
            ("in float64", lambda delta: delta.astype(np.float64), f"float64 of shape ({SIZE},)"),
        )
    },
    "no update": (lambda update: update.delta, "train returned a ndarray in the place of its Update"),
    "infinite": (
        lambda update: replace(update, extra={"own": np.array([np.inf])}),
        "its update holds NaN or infinite values (first in what it returns)",
    ),
}


def failed(method: Any, output: Path) -> str:
    with pytest.raises(raysim.RaysimError) as caught:
        raysim.run(method, model=seeded(), clients=three_clients(), output=str(output), **QUICK)
    return str(caught.value)


@pytest.mark.parametrize("case", UPDATES)
def test_an_update_is_refused_by_the_name_of_its_part(case: str, tmp_path: Path) -> None:
    change, words = UPDATES[case]
    said = failed(changed(change), tmp_path / "run")
    assert said.startswith(f"client 0, round 1, stage update: {words}") and "\n" not in said


def test_a_state_of_a_client_is_refused_by_the_name_of_its_part(tmp_path: Path) -> None:
    said = failed(KeepsALock(), tmp_path / "run")
    assert said.startswith("client 0, round 1, stage update: client state.method.lock: a value") and "\n" not in said


def test_a_message_is_refused_by_the_name_of_its_part(tmp_path: Path) -> None:
    said = failed(SendsALock(), tmp_path / "run")
    assert said == f"client 0, round 1, stage message: Message.extra.lock: {NEITHER.format('lock')}"


def sending(change: Callable[[Message], Any]) -> FedAvg:
    """FedAvg whose messages are changed."""

    class Sends(FedAvg):
        def message(self, server: Any, client: int) -> Any:
            return change(super().message(server, client))

    return Sends()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda message: message.parameters, "message returned a ndarray in the place of a Message"),
        (lambda message: Message(TENSOR), "Message.parameters is a value of type Tensor, not a numpy array of float32"),
        (
            lambda message: Message(message.parameters.astype(np.float64)),
            f"Message.parameters is a value of type ndarray of shape ({SIZE},) of float64, not a numpy array of fl",
        ),
        (
            lambda message: Message(message.parameters[:, None]),
            f"Message.parameters is a value of type ndarray of shape ({SIZE}, 1) of float32, not a numpy array of fl",
        ),
    ],
)
def test_what_is_sent_is_a_vector_of_float32(change: Callable[[Message], Any], words: str, tmp_path: Path) -> None:
    said = failed(sending(change), tmp_path / "run")
    assert said.startswith(f"client 0, round 1, stage message: {words}") and "\n" not in said


def test_traits_that_are_no_traits_are_a_sentence(tmp_path: Path) -> None:
    class Wrong(FedAvg):
        traits: ClassVar[Any] = {"weighted_mean": True}

    assert failed(Wrong(), tmp_path / "run").endswith("traits is a dict. Write traits = Traits(...) of raysim.method.")


REPORTS: dict[str, tuple[str, Any, Any, str]] = {
    **{
        f"the column {name}": ("round", name, 0.99, f"report.round: {name} is a column that the run makes itself, ")
        for name in ("round", "accuracy", "loss", "bytes_up", "seconds_train", "client_accuracies", "neighbors")
    },
    "no name": ("round", "own-loss", 1.0, "report.round: 'own-loss' is no name of a column"),
    "an array": (
        "round",
        "own",
        np.zeros(3),
        "report.round: own is a value of type ndarray of shape (3,), not a number",
    ),
    "a text": ("round", "own", "x", "report.round: own is a value of type str, not a number"),
    "clients' numbers": ("clients", "client", np.zeros(3), "report.clients: client is a column that the run makes"),
    "too few values": (
        "clients",
        "own",
        np.zeros(2),
        "report.clients: own is a value of type ndarray of shape (2,), not an array of 3 numbers, one for each update",
    ),
    "one value": ("clients", "own", 1.0, "report.clients: own is a value of type float, not an array of 3 numbers"),
    "texts": ("clients", "own", ["a", "b", "c"], "report.clients: own is a value of type list, not an array of 3"),
}


@pytest.mark.parametrize("case", REPORTS)
def test_a_report_is_refused_by_the_name_of_its_column(case: str, tmp_path: Path) -> None:
    *report, words = REPORTS[case]
    said = failed(reporting(*report), tmp_path / "run")
    assert said.startswith(f"round 1, stage aggregate: {words}") and "\n" not in said
    assert not (tmp_path / "run").exists()


def test_a_metric_of_the_data_is_a_column_of_its_own(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "output": str(tmp_path / "run"), **QUICK}
    with pytest.raises(raysim.RaysimError, match=r"Update\.metrics: gain is also a metric by which the data is judged"):
        raysim.run(changed(measuring(gain=1.0)), metrics={"gain": lambda outputs, labels: labels * 0.5}, **given)


def test_a_client_whose_metrics_are_no_columns_may_be_skipped(tmp_path: Path) -> None:
    def of_second(update: Update) -> Update:
        return measuring(client=7.0)(update) if update.metrics["steps"] == 1 else update  # the one of 20 samples

    engine = QUICK["engine"] | {"on_client_error": "skip"}
    given: dict[str, Any] = QUICK | {"engine": engine, "training.batch_size": 20}
    own: dict[str, Any] = {"model": seeded(), "clients": three_clients(), "output": str(tmp_path / "run")}
    found = raysim.run(changed(of_second), **own, **given)
    assert found.clients["client"].tolist() == [0, 2] * 3


def test_numbers_of_a_method_are_columns(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": seeded(), "clients": three_clients(), **QUICK}
    numbers = measuring(whole=3, half=np.float32(0.5), large=np.int64(2**40), missing=math.nan, train_loss=0.25)
    found = raysim.run(changed(numbers), **given, output=str(tmp_path / "metrics")).clients
    first = found[["whole", "half", "large", "train_loss"]].iloc[0].tolist()
    assert first == [3, 0.5, 2**40, 0.25] and found["missing"].isna().all()
    told = raysim.run(
        reporting("clients", "chosen", np.array([True, False, True])), **given, output=str(tmp_path / "a")
    )
    assert told.clients["chosen"].tolist() == [1, 0, 1] * 3
    told = raysim.run(reporting("round", "own", np.float64(0.5)), **given, output=str(tmp_path / "b"))
    assert told.rounds["own"].tolist() == [0.5] * 3
