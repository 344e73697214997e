"""Live updates in a real Chromium: numbers, lists and alarms, also while the console or the store is unavailable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pillarbox.core.event import Event
from tests.console.serving import serving
from tests.console.watching import Watched, watched
from tests.integration.cli.conftest import Stock, filled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAUSE = """
fetch('/api/v1/everything', {method: 'POST', body: JSON.stringify({action: 'pause'}), headers: {
  'content-type': 'application/json', 'x-csrf-token': document.querySelector('meta[name=token]').content}})
"""
FOCUSED = "document.activeElement.textContent.trim()"


@pytest.fixture
def dead_letters(sqlite_url: str) -> Stock:
    return filled(Stock(sqlite_url))


def test_pages_update_live(dead_letters: Stock, tmp_path: Path, browser: Browser) -> None:
    given = {"PILLARBOX_CONSOLE__LOGIN": "none", "PILLARBOX_CONSOLE__SLO": "1ms"}
    with serving(dead_letters.url, tmp_path, **given) as base:
        with watched(browser, base) as visitor:
            numbers_come_as_a_stream(visitor, dead_letters)
            a_list_keeps_the_focus(visitor, dead_letters)
            a_question_stays_open(visitor)
            alarms_and_buttons_change(visitor)
            visitor.check()
        with watched(browser, base) as visitor:
            visitor.page.route("**/live", lambda route: route.fulfill(status=403))
            numbers_come_without_a_stream(visitor, dead_letters)
            old_samples_are_marked(visitor.page)


def numbers_come_as_a_stream(visitor: Watched, stock: Stock) -> None:
    page = visitor.go("/")
    page.wait_for_selector("[data-live=backlog]:text-is('2')")
    stock.record(Event("order.placed", {}, event_id="one-more"))
    page.wait_for_selector("[data-live=backlog]:text-is('3')")


def a_list_keeps_the_focus(visitor: Watched, stock: Stock) -> None:
    visitor.page.clock.install()
    page = visitor.go("/events?live=1&status=PENDING")
    page.keyboard.press("j")
    page.keyboard.press("j")
    row = page.evaluate("document.activeElement.id")
    assert row.startswith("row-")
    drawn_anew(page, stock, "even-later")
    assert page.evaluate("document.activeElement.id") == row
    page.get_by_role("link", name="even-later").focus()
    drawn_anew(page, stock, "latest")
    assert page.evaluate(FOCUSED) == "even-later"


def drawn_anew(page: Page, stock: Stock, event_id: str) -> None:
    stock.record(Event("order.placed", {}, event_id=event_id))
    page.clock.fast_forward(2000)
    page.get_by_role("link", name=event_id).wait_for()


def a_question_stays_open(visitor: Watched) -> None:
    page = visitor.go("/")
    page.locator("summary", has_text="Pause all").click()
    with page.expect_response("**/?window=15m"):
        page.clock.fast_forward(5000)
    assert page.locator("details[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("details[open]").count() == 0
    assert page.evaluate(FOCUSED) == "Pause all…"


def alarms_and_buttons_change(visitor: Watched) -> None:
    page = visitor.page
    page.get_by_role("link", name="All relays").focus()
    late = page.locator(".problem", has_text="The oldest pending event").inner_text()
    page.evaluate(PAUSE)
    page.clock.fast_forward(5000)
    page.get_by_role("button", name="Resume all").wait_for()
    assert page.evaluate(FOCUSED) == "All relays"
    assert page.locator(".problem", has_text="The oldest pending event").inner_text() != late


def numbers_come_without_a_stream(visitor: Watched, stock: Stock) -> None:
    visitor.page.clock.install()
    page = visitor.go("/")
    page.wait_for_selector("[data-live=backlog]:text-is('5')")
    stock.record(Event("order.placed", {}, event_id="without-a-stream"))
    page.clock.fast_forward(2000)
    page.wait_for_selector("[data-live=backlog]:text-is('6')")


def old_samples_are_marked(page: Page) -> None:
    page.route("**/*", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.clock.fast_forward(2000)
    page.clock.fast_forward(4000)
    page.get_by_text("No connection to the console since").wait_for()
    assert page.locator("body.old").count() == 1
    page.unroute("**/*")
    page.clock.fast_forward(2000)
    page.locator("#lost").wait_for(state="hidden")
    assert page.locator("body.old").count() == 0
    page.route("**/*", lambda route: route.fulfill(status=503, json={"error": "it is down"}))
    page.clock.fast_forward(2000)
    page.get_by_text("Store unavailable since").wait_for()
    assert page.locator(".health[data-state=unknown] .sentence").inner_text().endswith("it is down")
