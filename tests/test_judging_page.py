"""The runs and the answer of docs/judging.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import raysim
from raysim.judge.__main__ import main
from tests.long_tests import long

PAGE = Path(__file__).parents[1] / "docs/judging.md"


@long  # ten runs
def test_the_verdict_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "--workload digits --model logistic --clients 10 --rounds 10 --alpha 0.1" in text
    options: dict[str, Any] = {"workload": "digits", "model": "logistic", "clients": 10, "rounds": 10, "alpha": 0.1}
    for seed in range(5):
        for method in ("fedavg", "scaffold"):
            place: dict[str, Any] = {"seed": seed, "output": str(tmp_path / method / str(seed)), "backend": "inline"}
            raysim.run(**options, **place, method=method, pictures=False)
    capsys.readouterr()
    assert main([str(tmp_path / "fedavg"), str(tmp_path / "scaffold")]) == 0
    shown = text.split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out.startswith(shown)
