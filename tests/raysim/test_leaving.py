"""``os._exit`` and ``sys.exit`` in code of a run: errors, and the process is as it was afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from raysim.errors import REFUSED, RaysimError
from raysim.launch import main
from raysim.leaving import staying
from tests.small_runs import IN_PROCESS, LOGISTIC, words

LEAVING = """
import os, sys
from dataclasses import dataclass
from raysim.methods.fedavg import FedAvg

if "{place}" == "import":
    {leave}

@dataclass(frozen=True)
class Leaving(FedAvg):
    def __post_init__(self):
        if "{place}" == "init":
            {leave}

    def aggregate(self, server, updates, context):
        {leave}
"""


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
@pytest.mark.parametrize(("place", "code"), [("import", REFUSED), ("init", REFUSED), ("aggregate", 1)])
def test_a_method_that_leaves_is_one_sentence_and_no_success(
    place: str,
    code: int,
    leave: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = f"leaving_{place}_{leave[:2]}"
    (tmp_path / f"{module}.py").write_text(LEAVING.format(place=place, leave=leave))
    monkeypatch.syspath_prepend(tmp_path)
    own = {"method.name": f"{module}:Leaving", "output": tmp_path / "run"}
    assert main(words(IN_PROCESS | LOGISTIC | own)) == code
    said = capsys.readouterr().err
    assert f"{leave} was called, and code of a run may not end the program" in said
    where = {"import": f"cannot import '{module}'", "aggregate": "round 1, stage aggregate"}.get(place, "")
    assert where in said


def test_only_this_process_stays() -> None:
    before = os._exit
    with staying():
        with pytest.raises(RaysimError, match=r"os._exit\(3\) was called"), staying():
            os._exit(3)
        with pytest.raises(RaysimError, match=r"sys.exit\('no'\) was called"), staying():
            sys.exit("no")
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert os._exit is before


def test_threads_that_stay_leave_nothing_behind() -> None:
    """Also where the first to enter is the first to leave."""
    before, entered, left = os._exit, Event(), Event()

    def stay() -> None:
        with staying():
            entered.set()
            left.wait(60)

    other = Thread(target=stay)
    with staying():
        other.start()
        assert entered.wait(60)
    assert os._exit is not before
    left.set()
    other.join()
    assert os._exit is before
