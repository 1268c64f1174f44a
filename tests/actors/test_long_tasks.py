"""Functions as Ray tasks of a cluster's room."""

from __future__ import annotations

import os
import signal

import pytest

from raysim.actors.long_tasks import RETRIES, LongTasks
from raysim.config.run_config import default_config
from raysim.errors import PlacementError, RaysimError


def does(what: str) -> str:
    if what == "raises":
        raise ValueError("it is broken")
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return what


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
def test_values_errors_and_deaths_return_and_room_is_counted() -> None:
    before = signal.getsignal(signal.SIGINT)
    with LongTasks(default_config()) as tasks:
        assert (tasks.room(1, 0), tasks.room(2, 0), tasks.room(1, 1), tasks.cores()) == (3, 1, 0, 3)
        sent = {tasks.send(what, 1, 0, does, what): what for what in ("returns", "raises", "dies")}
        found = dict[str, object]()
        while len(found) < len(sent):
            waiting = [reference for reference, what in sent.items() if what not in found]
            found |= {sent[reference]: value for reference, value in tasks.returned(waiting, 1.0).items()}
    assert found["returns"] == "returns"
    assert isinstance(found["raises"], RaysimError) and "it is broken" in str(found["raises"])
    assert isinstance(found["dies"], RaysimError) and f"died {RETRIES + 1} times" in str(found["dies"])
    assert signal.getsignal(signal.SIGINT) == before


def test_a_task_that_no_node_can_do_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = LongTasks(default_config())
    monkeypatch.setattr(tasks, "nodes", lambda: [{"CPU": 2.0}, {"CPU": 3.0}])
    tasks.check("A", 3, 0)
    assert (tasks.room(1, 0), tasks.room(3, 0), tasks.cores()) == (5, 1, 5)
    for cpus, gpus, said in (
        (4, 0.0, r"A: it takes 4 CPU \(engine\.threads\), and no node .*: of 2 nodes none has more than 3 CPU\. Lower"),
        (1, 0.5, r"A: it takes 1 CPU .* and 0\.5 GPU \(engine\.gpus_per_client\), .* than 3 CPU and 0 GPU\. Lower"),
    ):
        with pytest.raises(PlacementError, match=said):
            tasks.check("A", cpus, gpus)
