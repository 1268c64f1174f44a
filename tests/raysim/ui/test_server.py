"""Who is answered, and with what."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from raysim.errors import ConfigError
from raysim.launch import main
from raysim.storage.run_folder import RunFolder
from raysim.ui import server
from raysim.ui.__main__ import main as ui_main
from raysim.ui.reading import Reading
from raysim.ui.server import STATIC, chart_library, is_loopback
from raysim.ui.serving import TOKEN_VARIABLE, Address, Page


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with closing(Page(folder, Address("127.0.0.1", 0))) as served:
        yield served


def status(url: str, **headers: str) -> int:
    request = urllib.request.Request(url, headers={name.title(): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def newer(page: Page, look: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"{page.url}parts?after={look}", timeout=120) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_the_first_answer_has_all_parts_and_the_next_what_has_changed(page: Page, folder: Path) -> None:
    first = newer(page, 0)
    assert set(first["parts"]) >= {"head", "rounds", "charts", "partition", "log"}
    assert "<h1>fedavg on digits</h1>" in first["parts"]["head"]["html"]
    assert len(first["parts"]["charts"]["series"]["accuracy"]) == 2
    RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.6})
    second = newer(page, first["look"])
    assert set(second["parts"]) == {"head", "tiles", "rounds", "charts"} and second["look"] > first["look"]
    assert len(second["parts"]["charts"]["series"]["accuracy"]) == 3


def test_who_asks_late_gets_the_newest_state_and_none_before_it(page: Page, folder: Path) -> None:
    """A slow browser drew each state in turn, and was a minute behind the run."""
    first, run = newer(page, 0), RunFolder.open(folder)
    looks = [first["look"]]
    for number in (3, 4, 5):
        run.append_round({"round": number, "accuracy": 0.1 * number})
        looks.append(newer(page, looks[-1])["look"])
    late = newer(page, first["look"])
    assert late["look"] == looks[-1] and late["parts"]["charts"]["series"]["accuracy"][-1] == [5.0, 0.5]


def test_a_folder_that_is_away_for_a_moment_is_said_and_looked_at_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page must not stay for good at what it showed before."""
    looks: list[str] = []

    def look(self: Reading) -> dict[str, Any]:
        looks.append("look")
        if len(looks) == 1:
            raise OSError(116, "Stale file handle")
        raise asyncio.CancelledError  # the next look came: enough

    reading = Reading(folder)
    reading.refresh()
    monkeypatch.setattr(Reading, "refresh", look)
    monkeypatch.setattr(server, "PAUSE", 0.0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(server._watch(reading))
    assert len(looks) == 2 and "Stale file handle" in reading.parts["head"]["html"]


def test_a_question_that_is_none_is_refused(page: Page) -> None:
    assert status(f"{page.url}parts?after=now") == 400


def test_a_page_that_is_closed_leaves_no_question_behind(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Asyncio wrote that a task "was destroyed but it is pending" for each browser that was looking."""
    served = Page(folder, Address("127.0.0.1", 0))
    look = newer(served, 0)["look"]
    browsers = [socket.create_connection(("127.0.0.1", served.port), timeout=120) for _ in range(4)]
    for number, browser in enumerate(browsers):
        for after in (0, look):  # the second has no answer yet
            browser.sendall(f"GET /parts?after={after} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert after or browser.recv(1)
        if number % 2:
            browser.close()
    served.close()
    del served
    gc.collect()
    for browser in browsers:
        browser.close()
    assert caplog.text == ""


def test_nothing_from_elsewhere_is_allowed_in(page: Page) -> None:
    for path in ("", "static/page.js", "static/style.css", "static/plotly.min.js"):
        with urllib.request.urlopen(page.url + path, timeout=120) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert (
                policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'") and "unsafe" not in policy
            )
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for file in (Path(__file__).parents[3] / "raysim" / "ui" / "static").iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, never fetched
        assert "//" not in text.replace("// ", "") or file.suffix == ".js", file.name
        assert "http:" not in text and "https:" not in text and "innerHTML" not in text, file.name


def test_the_chart_library_is_the_installed_one_and_is_sent_once(page: Page) -> None:
    address = f"{page.url}static/plotly.min.js"
    with urllib.request.urlopen(address, timeout=120) as answer:
        assert answer.read() == chart_library().read_bytes()
        assert answer.headers["Cache-Control"] == "no-cache"
        kept = answer.headers["ETag"]
    assert status(address, **{"if-none-match": kept}) == 304
    assert not list(STATIC.glob("*plotly*"))  # no copy in the repository
    with urllib.request.urlopen(f"{page.url}static/page.js", timeout=120) as answer:
        assert answer.headers["Cache-Control"] == "no-store"


def test_without_the_chart_library_one_sentence_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert ui_main([str(folder)]) == 2
    assert "draws its charts with plotly" in capsys.readouterr().err


def test_no_way_out_of_the_static_folder(page: Page) -> None:
    assert status(f"{page.url}static/../server.py") == 404
    assert status(f"{page.url}static/%2e%2e/server.py") in (403, 404)


def test_without_a_token_only_this_machines_names_are_answered(page: Page) -> None:
    """Otherwise a page from elsewhere could rebind its own name to 127.0.0.1 and read along."""
    assert status(page.url) == 200
    assert status(page.url, host=f"localhost:{page.port}") == 200
    assert status(page.url, host="evil.example") == 403
    assert status(page.url, host="127.0.0.1:99999") == 400


def test_another_host_asks_for_the_token(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "")
    with closing(Page(folder, Address("0.0.0.0", 0))) as served:
        base, _, token = served.url.partition("?token=")
        here = f"http://127.0.0.1:{served.port}/"
        assert len(token) >= 32 and not base.startswith("http://0.0.0.0")
        assert [status(here), status(f"{here}parts"), status(f"{here}?token=wrong")] == [403, 403, 403]
        assert status(here, cookie=f"raysim-ui-{served.port}={token}") == 200
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(f"{here}?token={token}", timeout=120) as answer:
            assert answer.url == here  # the token is out of the address
        with opener.open(f"{here}static/page.js", timeout=120) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        (":8300", Address("127.0.0.1", 8300)),
        ("0.0.0.0", Address("0.0.0.0", 0)),
        ("[::1]:8300", Address("::1", 8300)),
        ("[::1]", Address("::1", 0)),
    ],
)
def test_addresses(text: str, expected: Address) -> None:
    assert Address.parse(text) == expected


@pytest.mark.parametrize("text", ["localhost:http", "host:70000", "a:b:c"])
def test_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is no port\. Allowed: HOST, :PORT"):
        Address.parse(text)


def test_loopback() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "127.9.9.9", "::1")] == [True] * 4
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.2", "example.org", ""))


def test_a_run_from_the_command_line_with_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--method", "fedavg", "--model", "logistic", "--clients", "2", "--rounds", "2", "--engine.backend", "inline"]
    output = tmp_path / "run"
    assert main([*run, "--output", str(output), "--ui"]) == 0
    said = capsys.readouterr().err
    assert "live page: http://127.0.0.1:" in said and f"the page again: python -m raysim.ui {output}" in said
    assert json.loads((output / "status.json").read_text())["state"] == "finished"


def test_an_address_that_is_taken_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "run"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["--method", "fedavg", f"--ui=127.0.0.1:{port}", "--output", str(output)]) == 2
    assert f"nothing can listen at 127.0.0.1:{port}" in capsys.readouterr().err and not output.exists()
