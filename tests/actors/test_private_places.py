"""A Ray that is started here keeps its token and its session to this user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from raysim.actors import private_places
from raysim.actors.private_places import make_token, session_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home, and no variable that names a token or a folder."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_TMPDIR", "RAY_AUTH_MODE", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_token_that_is_there_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_token()
    token = home / ".ray" / "auth_token"
    first = token.read_text()
    assert mode(token) == 0o600 and sorted(path.name for path in token.parent.iterdir()) == ["auth_token"]
    make_token()
    assert token.read_text() == first
    token.unlink()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of-a-cluster")
    make_token()
    assert not token.exists()


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o600, 0o600), (0o400, 0o400)])
def test_a_token_that_others_can_read_is_closed(home: Path, before: int, after: int) -> None:
    token = home / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("of-the-user")
    token.chmod(before)
    make_token()
    assert mode(token) == after and token.read_text() == "of-the-user"
    target = token.rename(home / "elsewhere")
    target.chmod(0o644)
    token.symlink_to(target)  # somebody's arrangement
    make_token()
    assert mode(target) == 0o644


def test_a_home_that_cannot_be_written_is_no_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".ray").write_text("a file")
    make_token()


def test_the_folder_is_this_users(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr(private_places, "LONGEST", 1000)
    place = home / f"ray-{os.getuid()}"
    assert session_folder() == str(place / "ray") and mode(place) == 0o700
    place.chmod(0o777)
    assert session_folder() == str(place / "ray") and mode(place) == 0o700
    place.rmdir()
    (home / "elsewhere").mkdir()
    place.symlink_to(home / "elsewhere")  # as another user may lay it in /tmp
    other = session_folder()
    assert other is not None and Path(other).parents[1] == home and not Path(other).is_relative_to(place)
    assert mode(Path(other).parent) == 0o700
    monkeypatch.setattr(private_places, "LONGEST", 10)
    assert Path(str(session_folder())).is_relative_to("/tmp/")
    monkeypatch.setenv("RAY_TMPDIR", str(home))
    assert session_folder() is None
