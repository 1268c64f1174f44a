"""The page in a headless Chromium: a run that goes on, an actor that is killed, the end, and the time after it."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from raysim.config.run_config import build
from raysim.driver.outcome import Outcome
from raysim.engine.observer import Silent
from raysim.running.open_run import prepare
from raysim.running.simulation import execute
from raysim.storage.run_folder import RunFolder
from raysim.ui.serving import Address, Page
from tests.chromium import MARKS
from tests.chromium import browser as browser

COMPLAINTS = ("error", "warning")
pytestmark = MARKS
PATIENT = 180_000.0
"""Milliseconds until what must come has come."""


def tab(browser: Any, page: Page, **options: Any) -> tuple[Any, list[str]]:
    """The page, opened, and what its console complains about."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENT)  # a busy machine draws late
    opened = browser.new_page(**options)
    complaints: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type in COMPLAINTS else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(page.url)
    return opened, complaints


@contextmanager
def shown(browser: Any, folder: Path, **options: Any) -> Iterator[Any]:
    """The page of a run, opened; at the end nothing has been complained about."""
    with closing(Page(folder, Address("127.0.0.1", 0))) as page:
        opened, complaints = tab(browser, page, **options)
        yield opened
        assert complaints == []
        opened.close()


def until(opened: Any, expression: str, value: object) -> None:
    """Waits until JavaScript says so; not by the page itself, whose policy forbids to evaluate text."""
    deadline = time.monotonic() + PATIENT / 1000
    while opened.evaluate(expression) != value:
        assert time.monotonic() < deadline, expression
        opened.wait_for_timeout(100)


@pytest.mark.usefixtures("ray_session")
def test_a_run_from_its_first_round_to_after_its_end(browser: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    options = {
        "method.name": "fedavg",
        "model.name": "logistic",
        "workload.clients": 6,
        "schedule.rounds": 5000,  # until it is stopped
        "engine.actors": 2,
        "output": str(tmp_path / "run"),
    }
    config = build([options])
    folder = prepare(config)
    page, stop, outcomes = Page(folder, Address("127.0.0.1", 0)), threading.Event(), list[Outcome]()
    run = threading.Thread(
        target=lambda: outcomes.append(execute(config, folder, Silent(), stopping=stop.is_set)), daemon=True
    )
    run.start()
    try:
        opened, complaints = tab(browser, page)
        expect(opened.locator("h1")).to_have_text("fedavg on digits")
        expect(opened.locator("#state")).to_have_text("running", timeout=PATIENT)
        # It moves by itself: more rounds than were there.
        expect(opened.locator("#pace")).to_have_text(re.compile("^[1-9]"), timeout=PATIENT)
        seen = opened.locator("#pace").inner_text().split(" of ")[0]
        expect(opened.locator("#pace")).not_to_have_text(re.compile(f"^({seen}|0) of"), timeout=PATIENT)
        expect(opened.locator("#accuracy path.js-line").first).to_be_visible()
        expect(opened.locator("[data-part=clients] tbody tr")).to_have_count(6)
        expect(opened.locator(".slot")).to_have_count(2, timeout=PATIENT)

        slots = json.loads((folder / "status.json").read_text())["slots"]
        os.kill(slots[1]["process"], signal.SIGKILL)
        expect(opened.locator("#faults li").first).to_contain_text("client-actor-01 died during round", timeout=PATIENT)
        expect(opened.locator(".slot.replaced")).to_contain_text("replaced 1×", timeout=PATIENT)

        stop.set()
        run.join(240)
        assert [outcome.status for outcome in outcomes] == ["stopped"]
        expect(opened.locator("#state")).to_have_text("stopped", timeout=PATIENT)
        expect(opened.locator("[data-part=current] section")).to_have_count(0)
        opened.reload()
        expect(opened.locator("#faults li").first).to_contain_text("client-actor-01 died")
        assert complaints == []
    finally:
        stop.set()
        run.join(240)
        page.close()
    # The server has ended too: what was there stays on the screen, and the page says what happened.
    expect(opened.locator("#offline")).to_contain_text("The page's server has ended", timeout=PATIENT)
    expect(opened.locator("[data-part=clients] tbody tr")).to_have_count(6)
    opened.close()


def test_texts_of_a_run_are_texts(browser: Any, folder: Path) -> None:
    from playwright.sync_api import expect

    with shown(browser, folder) as opened:
        for place in ("#plan", "#faults", "[data-part=clients]"):
            expect(opened.locator(place)).to_contain_text("<img src=x onerror")
        opened.get_by_text("run.log").click()
        expect(opened.locator("#log")).to_contain_text("<img src=x onerror")
        assert opened.locator("img").count() == 0 and opened.title() == "fedavg on digits"


def test_a_chart_tells_values_is_logarithmic_on_request_and_keeps_a_zoom(browser: Any, folder: Path) -> None:
    from playwright.sync_api import expect

    with shown(browser, folder) as opened:
        opened.locator("#loss").scroll_into_view_if_needed()
        expect(opened.locator("#loss path.js-line").first).to_be_visible(timeout=PATIENT)
        opened.locator("#loss .nsewdrag").hover()
        expect(opened.locator("#loss .hoverlayer")).to_contain_text("round ")
        opened.get_by_role("button", name="log scale").click()
        kind = "document.getElementById('loss')._fullLayout.yaxis.type"
        until(opened, kind, "log")
        # A new round is drawn beside the others, and what the reader has chosen stays.
        opened.evaluate("Plotly.relayout('loss', {'xaxis.range': [0, 2]})")
        RunFolder.open(folder).append_round({"round": 3, "accuracy": 0.9, "loss": 0.2, "bytes_down": 0, "bytes_up": 0})
        until(opened, "document.getElementById('loss').data[0].x.length", 3)
        assert opened.evaluate(kind) == "log"
        assert opened.evaluate("document.getElementById('loss')._fullLayout.xaxis.range") == [0, 2]
        # What the rounds have cost so far, not the rounds' numbers.
        opened.get_by_role("button", name="B sent and received").click()
        until(opened, "document.getElementById('accuracy').data[0].x.join()", "30,60,60")
        expect(opened.get_by_role("button", name="virtual")).to_have_count(0)


def test_a_part_that_cannot_be_drawn_stops_no_other(browser: Any, folder: Path) -> None:
    from playwright.sync_api import expect

    with closing(Page(folder, Address("127.0.0.1", 0))) as page:
        opened, complaints = tab(browser, page)
        opened.locator("#loss").scroll_into_view_if_needed()
        expect(opened.locator("#loss path.js-line").first).to_be_visible(timeout=PATIENT)
        opened.evaluate("document.querySelector('[data-part=clients]').remove()")
        rounds = opened.evaluate("document.getElementById('loss').data[0].x.length")
        for number in (3, 4):
            run, costs = RunFolder.open(folder), {"bytes_down": 0, "bytes_up": 0}
            run.append_clients([{"round": number, "client": 0, "name": "0", "samples": 1, "loss": 0.1}])
            run.append_round({"round": number, "accuracy": 0.9, "loss": 0.2, **costs})
            until(opened, "document.getElementById('loss').data[0].x.length", rounds + number - 2)
        assert complaints and all("clients could not be drawn" in text for text in complaints), complaints
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Any, folder: Path, scheme: str) -> None:
    with shown(browser, folder, viewport={"width": 360, "height": 740}, color_scheme=scheme) as opened:
        opened.wait_for_selector(".tile")
        assert opened.evaluate("document.documentElement.scrollWidth") == 360
        ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(18, 20, 23)") == (scheme == "dark")
        opened.get_by_role("button", name="unfair 0").click()
        assert "no client is unfair" in opened.locator("[data-part=clients]").inner_text()
        assert not opened.locator("[data-part=clients] tbody tr").first.is_visible()
