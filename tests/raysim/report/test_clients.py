"""Who is late, lost, unfairly served, or an attacker, by hand."""

from __future__ import annotations

from typing import Any

import pandas
import pytest

from raysim.report import clients as clients_of_a_page
from raysim.report.clients import SHOWN, Clients
from raysim.report.html import Marks, Table
from raysim.units import THIN


def row(client: int, accuracy: float | None, seconds: float = 1.0, round: int = 1) -> dict[str, Any]:
    named = {"name": f"client {client}", "samples": 10.0, "loss": 0.5}
    return {"round": float(round), "client": float(client), "accuracy": accuracy, "seconds_task": seconds} | named


def view(clients: Clients, lost: dict[str, int] | None = None) -> dict[str, Any]:
    found = clients.view(lost)
    assert found is not None
    return found


def counts(found: dict[str, Any]) -> dict[str, int]:
    return {mark["name"]: mark["count"] for mark in found["marks"]}


def marks(table: Table) -> dict[int, list[str]]:
    """Client → what is the matter with it, in the order of the table."""
    place = table.headings.index("marks")
    found = {}
    for line in table.rows:
        cell = line[place]
        assert isinstance(cell, Marks)
        found[int(str(line[0]))] = [text for _, text in cell.marks]
    return found


def test_late_lost_and_unfair_by_hand() -> None:
    clients = Clients()
    # Seconds 1, 1, 1, 2, 5: the median is 1, so 2 is not yet late and 5 is. Accuracies' median is 0.8.
    clients.add([row(0, 0.8), row(1, 0.9), row(2, 0.5), row(3, 0.7, 2.0), row(4, 0.85, 5.0)])
    found = view(clients, {"3": 2, "9": 1})
    assert marks(found["table"]) == {
        2: ["unfair"],
        3: ["lost 2×"],
        0: [],
        4: ["late 5.0×"],
        1: [],
        9: ["lost 1×"],  # it never had a good client task, so no table has it
    }
    assert list(marks(found["table"]))[:5] == [2, 3, 0, 4, 1]  # worst first
    assert counts(found) == {"all": 5, "late": 1, "lost": 2, "unfair": 1, "malicious": 0}
    assert f"5 clients took part; accuracy on their own test sets: 50.00{THIN}% to 90.00{THIN}%" in found["note"]
    assert found["spread"] == [0.5, 0.7, 0.8, 0.85, 0.9]


def test_an_attacker_is_marked_by_its_last_update() -> None:
    clients = Clients()
    clients.add([row(0, 0.8) | {"malicious": 1.0}, row(1, 0.8) | {"malicious": 0.0}])
    assert marks(view(clients)["table"]) == {0: ["malicious"], 1: []}
    clients.add([row(0, 0.8, round=2) | {"malicious": 0.0}])
    assert counts(view(clients))["malicious"] == 0


def test_equal_clients_are_not_unfair() -> None:
    clients = Clients()
    clients.add([row(number, 0.8 - number / 1000) for number in range(20)])
    assert counts(view(clients))["unfair"] == 0


def test_a_round_without_evaluation_keeps_the_last_accuracy() -> None:
    clients = Clients()
    clients.add([row(0, 0.6), row(0, None, round=2)])
    (found,) = view(clients)["table"].rows
    assert found[1].text == f"60.00{THIN}%" and found[-3:-1] == ["2", "2"]


def test_many_clients_are_few_rows() -> None:
    clients = Clients()
    clients.add([row(number, number / 5000) for number in range(5000)])
    found = view(clients)
    rows = found["table"].rows
    assert counts(found)["all"] == 5000 and len(rows) == 2 * SHOWN and len(found["spread"]) == 5000
    assert [rows[0][0], rows[-1][0]] == ["0", "4999"] and "4920 in the middle" in found["note"]


def test_before_the_first_client_there_is_no_table() -> None:
    assert Clients().view() is None


@pytest.mark.parametrize("block", [1, 4, 100])
def test_a_table_read_in_blocks_is_the_same_as_its_rounds(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Clients are late beside their own round, however many rounds are read at a time."""
    monkeypatch.setattr(clients_of_a_page, "BLOCK", block)
    rounds = [
        [row(n, 0.1 * n + 0.1 * k if n else None, 5.0 if n == k else 1.0, k) for n in range(4)] for k in (1, 2, 3)
    ]
    one_by_one, at_once = Clients(), Clients()
    for rows in rounds:
        one_by_one.add(rows)
    at_once.add_frame(pandas.DataFrame([row for rows in reversed(rounds) for row in rows]))
    expected, found = view(one_by_one), view(at_once)
    assert (
        marks(found["table"])
        == marks(expected["table"])
        == {
            1: ["unfair"],
            2: [],
            3: ["late 5.0×"],
            0: [],
        }
    )
    assert (found["spread"], found["note"]) == (expected["spread"], expected["note"])
