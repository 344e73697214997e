"""Long, wide and right-to-left content in a real Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pillarbox import Inbox
from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.core.statistics import ConsumerStatistics, OutcomeStatistics
from tests.console.scene import fill
from tests.console.serving import serving
from tests.console.watching import watched
from tests.integration.cli.conftest import Stock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAME, VALUE = "\u05e9\u05dd", "\u05e2\u05e8\u05da"
LARGEST = "~987,654,321"
_OVERFLOW = "element => element.scrollWidth - element.clientWidth"
_DRAWN = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const red = (at) => data[at] > 150 && data[at + 1] < 60 && data[at + 2] < 60 && data[at + 3] > 200;
  return data.some((value, at) => at % 4 === 0 && red(at));
}"""
"""Is anything drawn in the colour of p99?"""


@pytest.fixture
def long_and_wide(sqlite_url: str) -> Stock:
    """An event with a long name and a long error, one of bytes, and a single sample."""
    stock = Stock(sqlite_url)
    stock.record(
        Event("bill.wanted." + "long." * 20, {NAME: VALUE}, event_id="stuck", key="k"),
        Event("order.placed", b"\x00" * 64, event_id="bytes", content_type="application/octet-stream"),
    )
    stock.settle(stuck=(Dead(error="no " * 700, block=True), "orders"))
    stock.run(_measure_once_and_pause)
    with stock.transaction() as transaction:
        Inbox().add_statistics(transaction, ConsumerStatistics("billing", dead_lettered=9))
    return stock


def test_long_wide_and_single_values_are_shown_completely(
    long_and_wide: Stock, tmp_path: Path, browser: Browser
) -> None:
    with serving(long_and_wide.url, tmp_path, PILLARBOX_CONSOLE__LOGIN="none") as base:
        for width in (1280, 800, 390):
            with watched(browser, base, width=width) as visitor:
                the_largest_number_fits(visitor.go("/"))
                if width == 1280:
                    the_first_event_of_a_key_can_be_reached(visitor.go("/keys"))
                    a_single_sample_is_a_point(visitor.go("/"))
                    a_name_comes_before_its_value(visitor.go("/event?id=stuck"))
                if width == 390:
                    what_is_in_one_cell_is_in_one_column(visitor.go("/destinations"))
                    bytes_stay_in_line(visitor.go("/event?id=bytes&as=hex"))
                    long_labels_wrap(visitor.go("/inbox"))
                visitor.check()


async def _measure_once_and_pause(store: AdminStore) -> None:
    carried = OutcomeStatistics()
    carried.count_delivered(0.02)
    await store.statistics.add("relay-1", {"orders": carried})
    await store.admin.requests.override("orders", paused=True, by="ada")


def the_largest_number_fits(page: Page) -> None:
    value = page.locator("[data-live=backlog]")
    value.evaluate("(element, text) => { element.removeAttribute('data-live'); element.textContent = text; }", LARGEST)
    assert page.locator(f".value:text-is('{LARGEST}')").evaluate(_OVERFLOW) <= 0


def the_first_event_of_a_key_can_be_reached(page: Page) -> None:
    link = page.get_by_role("link", name="stuck").last
    assert link.evaluate(
        "link => link.getBoundingClientRect().right <= link.closest('td').getBoundingClientRect().right"
    )
    error = page.locator(".clamp").last
    clamped = error.bounding_box()
    error.click()
    whole = error.bounding_box()
    assert clamped is not None
    assert whole is not None
    assert clamped["height"] < 80 < whole["height"]


def a_single_sample_is_a_point(page: Page) -> None:
    page.wait_for_selector("#chart-lag canvas")
    assert page.locator("#chart-lag canvas").evaluate(_DRAWN)


def a_name_comes_before_its_value(page: Page) -> None:
    name, value = (page.locator(f".payload .{kind}").bounding_box() for kind in ("name", "text"))
    assert name is not None
    assert value is not None
    assert name["x"] + name["width"] <= value["x"]


def what_is_in_one_cell_is_in_one_column(page: Page) -> None:
    cell = page.locator("td[data-label=State]")
    state, by = cell.locator(".badge").bounding_box(), cell.locator(".by").bounding_box()
    assert state is not None
    assert by is not None
    assert by["x"] > state["x"]


def long_labels_wrap(page: Page) -> None:
    label = page.locator("td[data-label='Dead-lettered, 24 h']")
    assert label.evaluate("cell => getComputedStyle(cell, '::before').whiteSpace") == "normal"


def bytes_stay_in_line(page: Page) -> None:
    assert page.locator(".payload").evaluate(_OVERFLOW) > 0
    assert page.locator(".payload").evaluate(
        "pre => pre.clientHeight < 6 * parseFloat(getComputedStyle(pre).lineHeight)"
    )


COLUMNS = """() => {
  const wrong = [];
  for (const cell of document.querySelectorAll(".list th, .list td:not(.acts)")) {
    const content = document.createRange();
    content.selectNodeContents(cell);
    const [text, box] = [content.getBoundingClientRect(), cell.getBoundingClientRect()];
    if (!text.width || !box.width || cell.querySelector(".visually-hidden")) continue;
    const overflows = text.right > box.right + 0.5 && !cell.matches(".cut, .said");
    const narrow = box.width < 60 && !cell.matches(".n");
    if (overflows || narrow) wrong.push(`${cell.textContent.trim()} in ${Math.round(box.width)} px`);
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls sideways");
  return wrong;
}"""
"""The cells that are too narrow for a name or for their content."""
PAGES = (
    *("/", "/events", "/dead", "/destinations", "/destination?name=search"),
    *("/keys", "/relays", "/inbox", "/store", "/audit"),
)
WIDTHS = (1440, 1400, 1399, 1344, 1343, 1081, 1080, 390)
"""Those of a screen and of a phone, and those at which the layout changes: a browser may fill half of a screen."""


@pytest.fixture
def all_states(sqlite_url: str) -> Stock:
    fill(stock := Stock(sqlite_url))
    return stock


def test_every_column_is_readable_at_any_width(all_states: Stock, tmp_path: Path, browser: Browser) -> None:
    with (
        serving(all_states.url, tmp_path, PILLARBOX_CONSOLE__LOGIN="none") as base,
        watched(browser, base) as visitor,
    ):
        for path in PAGES:
            page = visitor.go(path)
            ages = page.locator("td:is([data-label=Oldest], [data-label='Lag p95'], [data-label='Up for'])")
            ages.evaluate_all("cells => cells.forEach((cell) => { cell.textContent = '23 h 59 min'; })")
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 860})
                assert page.evaluate(COLUMNS) == [], (path, width)
        visitor.check()
