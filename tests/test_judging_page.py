"""The runs and the answer of docs/judging.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from raysim.judge.__main__ import main
from tests.long_tests import long

PAGE = Path(__file__).parents[1] / "docs/judging.md"


@long  # ten runs
def test_the_verdict_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(text.split("```python\n")[1].split("```")[0], {})
    capsys.readouterr()
    assert main(["runs/fedavg", "runs/scaffold"]) == 0
    shown = text.split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out.startswith(shown)
