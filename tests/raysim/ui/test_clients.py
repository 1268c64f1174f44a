"""Who is late, lost, or unfairly served, by hand."""

from __future__ import annotations

from typing import Any

from raysim.ui.clients import SHOWN, Clients


def row(client: int, accuracy: float | None, seconds: float = 1.0, round: int = 1) -> dict[str, Any]:
    named = {"name": f"client {client}", "samples": 10.0, "loss": 0.5}
    return {"round": float(round), "client": float(client), "accuracy": accuracy, "seconds_task": seconds} | named


def test_late_lost_and_unfair_by_hand() -> None:
    clients = Clients()
    # Seconds 1, 1, 1, 2, 5: the median is 1, so 2 is not yet late and 5 is. Accuracies' median is 0.8.
    clients.add([row(0, 0.8), row(1, 0.9), row(2, 0.5), row(3, 0.7, 2.0), row(4, 0.85, 5.0)])
    found = clients.view({"3": 2, "9": 1})
    marks = {r["client"]: (r["late"], r["lost"], r["unfair"]) for r in found["rows"]}
    assert marks == {
        2: (False, 0, True),
        3: (False, 2, False),
        0: (False, 0, False),
        4: (True, 0, False),
        1: (False, 0, False),
        9: (False, 1, False),  # it never had a good client task, so no table has it
    }
    assert list(marks)[:5] == [2, 3, 0, 4, 1]  # worst first
    assert found["counts"] == {"all": 5, "late": 1, "lost": 2, "unfair": 1}
    assert (found["lowest"], found["median"], found["highest"]) == (0.5, 0.8, 0.9)
    assert found["spread"] == [0.5, 0.7, 0.8, 0.85, 0.9]


def test_equal_clients_are_not_unfair() -> None:
    clients = Clients()
    clients.add([row(number, 0.8 - number / 1000) for number in range(20)])
    assert clients.view({})["counts"]["unfair"] == 0


def test_a_round_without_evaluation_keeps_the_last_accuracy() -> None:
    clients = Clients()
    clients.add([row(0, 0.6), row(0, None, round=2)])
    (found,) = clients.view({})["rows"]
    assert (found["accuracy"], found["rounds"], found["round"]) == (0.6, 2, 2)


def test_many_clients_are_few_rows() -> None:
    clients = Clients()
    clients.add([row(number, number / 5000) for number in range(5000)])
    found = clients.view({})
    assert found["counts"]["all"] == 5000 and len(found["rows"]) == 2 * SHOWN and len(found["spread"]) == 240
    assert [found["rows"][0]["client"], found["rows"][-1]["client"]] == [0, 4999]
