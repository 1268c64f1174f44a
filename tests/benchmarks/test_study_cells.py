"""The comparison of a study's cells in words, by hand from rows; nothing is timed."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks import study_cells


def test_the_sentence_by_hand() -> None:
    plain = {"way": "plain", "seconds_of_cell": 1.5}
    rows: list[dict[str, Any]] = [
        {"way": "alone", "seconds": 70, "seconds_of_cells": 60.0, "seconds_of_cell": 1.0, "rounds": 30, "workers": 2},
        *({**plain, "seconds": seconds} for seconds in (48, 52)),
        *({"way": "study", "seconds": seconds} for seconds in (50, 54)),
    ]
    assert study_cells.sentence(rows) == (
        "60 cells of 30 rounds by 2 workers: 52.0 s, 1.04 of the 50.0 s of 2 plain processes and 1.73 of the ideal "
        "30.0 s; a cell beside another takes 1.50 times as long as alone"
    )


def test_processor_time_is_that_of_grandchildren_too() -> None:
    code = "import sys, time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    _, processor, said = study_cells.timed([["sh", "-c", f"{sys.executable} -c '{code}'; echo done"]])
    assert processor > 0.2 and said == ["done\n"]
