"""Coalitions computed side by side: the same values, tasks and table as one after another, also after a kill."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from benchmarks.memory import descendants
from raysim.contribution.__main__ import main
from raysim.contribution.side_by_side import Workers
from raysim.errors import RaysimError
from raysim.running.simulation import run
from tests.attack.folders import small
from tests.long_tests import long

RUN: dict[str, Any] = {"schedule__rounds": 2, "method__name": "scaffold"}


def test_utilities_come_in_the_order_they_were_asked_for() -> None:
    workers = Workers(2, lambda store: lambda coalition: 0.0, 1)
    slow, quick = multiprocessing.Pipe(), multiprocessing.Pipe()
    answered = threading.Event()

    def serve(end: Connection, wait: bool) -> None:
        for _ in range(1 if wait else 3):
            coalition = end.recv()
            if wait:
                answered.wait()
            end.send((float(sum(coalition)), 2, 1) if coalition else (RaysimError("no utility"), 0, 0))
        answered.set()

    threads = [threading.Thread(target=serve, args=(end, wait)) for end, wait in ((slow[1], True), (quick[1], False))]
    for thread in threads:
        thread.start()
    workers._connections = [quick[0], slow[0]]  # the last one gets the first coalition
    asked = [frozenset({number}) for number in (5, 1, 3, 4)]
    assert list(workers.utilities(asked)) == [5.0, 1.0, 3.0, 4.0]
    assert (workers.computed, workers.taken) == (8, 4)
    for thread in threads:
        thread.join()
    failing = threading.Thread(target=serve, args=(slow[1], True))
    failing.start()
    workers._connections = [slow[0]]
    with pytest.raises(RaysimError, match="no utility"):
        list(workers.utilities([frozenset()]))
    failing.join()
    slow[1].close()
    with pytest.raises(RaysimError, match=r"died \(out of memory\?\)\. Give fewer --workers; the same command goes on"):
        list(workers.utilities([frozenset({1})]))
    for end in (slow[0], *quick):
        end.close()


@long
def test_two_workers_give_what_one_does_and_a_killed_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(small(tmp_path / "run", **RUN)).folder
    assert main([str(folder), "--output", str(tmp_path / "one"), "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main([str(folder), "--output", str(tmp_path / "three"), "--json", "--workers", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    words = [str(folder), "--output", str(tmp_path / "two"), "--json", "--workers", "2"]
    command = [sys.executable, "-m", "raysim.contribution", *words]
    begun = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)})
    table, once = tmp_path / "two" / "utilities.csv", tmp_path / "one" / "utilities.csv"
    while not table.exists() and begun.poll() is None:
        time.sleep(0.01)
    children = [process for process in descendants(begun.pid) if process != begun.pid]
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    ends = time.monotonic() + 60
    while left := [process for process in children if Path(f"/proc/{process}").exists()]:  # its workers
        assert time.monotonic() < ends, left
        time.sleep(0.05)
    assert once.read_text().startswith(table.read_text()) and len(table.read_text()) < len(once.read_text())
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert {**found, "client tasks": ""} == {**expected, "client tasks": ""}
    assert table.read_bytes() == once.read_bytes()
    assert (tmp_path / "two" / "shapley.csv").read_bytes() == (tmp_path / "one" / "shapley.csv").read_bytes()
