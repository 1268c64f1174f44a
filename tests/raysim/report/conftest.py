"""Pages without their pictures."""

from __future__ import annotations

import pytest

from raysim.report import compare, run_page


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and most tests are about the words."""
    monkeypatch.setattr(run_page, "run_picture", lambda *arguments: b"picture")
    monkeypatch.setattr(run_page, "cost_picture", lambda *arguments: b"picture")
    monkeypatch.setattr(compare, "comparison_picture", lambda *arguments: b"picture")
    monkeypatch.setattr(compare, "cost_picture", lambda *arguments: b"picture")
