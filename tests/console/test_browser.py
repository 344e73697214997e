"""The console in a real Chromium: every page, every action, live numbers, roles, narrow and wide, light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pillarbox.admin.states import EventState
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.ops.console.access import Role, User
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import UserEntry, write
from tests.console.conftest import states
from tests.console.scene import fill, past
from tests.console.serving import serving
from tests.console.watching import Watched, watched
from tests.integration.cli.conftest import Stock, filled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VECTOR = "</textarea><script>xss()</script><img src=x onerror=xss()>"
PAGES = (
    "/",
    "/events",
    "/dead",
    "/destinations",
    "/destination?name=orders",
    "/keys",
    "/relays",
    "/inbox",
    "/store",
    "/audit",
)
EVENTS = {
    EventState.DEAD_LETTERED: 3,
    EventState.BLOCKED: 5,
    EventState.RETRYING: 6,
    EventState.WAITING: 7,
    EventState.READY: 15,
    EventState.PARKED: 21,
    EventState.DELAYED: 64,
}
"""The number of an event of the scene in each state."""
EVENT = "/event?id=0193c2f0-6b1e-7c3a-9f57-0000000000"
MORE = (
    *(f"/events?state={state}" for state in EventState),
    "/dead?view=list",
    "/dead/edit?dead_letter_id=1",
    *(f"{EVENT}{number:02x}" for number in EVENTS.values()),
    "/replay?destination=orders",
    "/dead/decide?action=discard",
    "/keys/decide?action=skip",
    "/events/decide?action=retry&status=PENDING",
    "/store?doctor=1",
    "/nowhere",
)
WIDTHS = (1440, 1280, 390)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console over a shop with a past, which no test changes."""
    home = tmp_path_factory.mktemp("scene")
    stock = Stock(f"sqlite:///{home / 'shop.db'}")
    stock.run(lambda store: store.schema.apply())
    fill(stock)
    past(str(home / "shop.db"))
    with serving(stock.url, home, PILLARBOX_CONSOLE__LOGIN="none", PILLARBOX_TRANSPORT="stdout://") as base:
        yield base


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
OVERLAPPING = """[...document.querySelectorAll("table.list td, table.list th")]
  .filter(cell => cell.scrollWidth > cell.clientWidth + 1 && getComputedStyle(cell).overflowX === "visible")
  .map(cell => cell.textContent.trim())"""
"""The cells whose content runs over the next one."""


LINES = """all => all.map(one => new Set([...one.getClientRects()].map(part => Math.round(part.top))).size)"""
"""The number of lines of each element."""


def test_every_page_fits_is_readable_and_respects_its_policy(scene: str, browser: Browser) -> None:
    for scheme in SCHEMES:
        with watched(browser, scene, scheme=scheme) as visitor:
            for path, width in product((*PAGES, *MORE), WIDTHS):
                visitor.page.set_viewport_size({"width": width, "height": 860})
                # A style follows the width at once; charts are drawn in that which the page is loaded with.
                if width == WIDTHS[0] or path == "/":
                    visitor.go(path)
                check_layout(visitor, path, width, scheme)


def check_layout(visitor: Watched, path: str, width: int, scheme: str) -> None:
    """The page of that path is shown; nothing runs over its edge or its neighbour, and all text is readable."""
    page = visitor.page
    assert page.url == visitor.base + path
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert (path, max(wide, 0)) == (path, 0), f"{width} {scheme}"
    assert (path, page.evaluate(OVERLAPPING)) == (path, []), f"{width} {scheme}"
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert (path, page.evaluate(CONTRAST)) == (path, []), f"{width} {scheme}"
    visitor.check()


def test_the_scene_has_an_event_in_each_state(scene: str, browser: Browser) -> None:
    with watched(browser, scene) as visitor:
        for state, number in EVENTS.items():
            page = visitor.go(f"{EVENT}{number:02x}")
            assert (state, page.locator(f"main .badge:text-is('{state.label}')").count()) != (state, 0)
            listed = visitor.go(f"/events?state={state}").locator("tbody a.id")
            assert (state, listed.count()) != (state, 0)


def test_the_review_of_an_edit_fits_and_is_readable(scene: str, browser: Browser) -> None:
    for scheme in SCHEMES:
        with watched(browser, scene, scheme=scheme, width=WIDTHS[0]) as visitor:
            page = visitor.go("/dead/edit?dead_letter_id=1")
            page.get_by_label("Payload").fill(
                '{"total": {"amount": 1, "currency": "EUR"}, "note": "' + "long " * 80 + '"}'
            )
            page.get_by_role("button", name="Review changes").click()
            page.get_by_role("button", name="Retry", exact=True).wait_for()
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 860})
                check_layout(visitor, "/dead/edit", width, scheme)


def test_the_login_fits_and_is_readable(shop: Stock, tmp_path: Path, browser: Browser) -> None:
    write(tmp_path / "pillarbox.users", {"vera": UserEntry(user=User(name="vera"), hash=hashed("correct horse"))})
    with serving(shop.url, tmp_path) as base:
        for scheme in SCHEMES:
            with watched(browser, base, scheme=scheme) as visitor:
                for width in WIDTHS:
                    visitor.page.set_viewport_size({"width": width, "height": 860})
                    visitor.go("/login")
                    check_layout(visitor, "/login", width, scheme)


def test_charts_are_drawn_from_samples(scene: str, browser: Browser) -> None:
    with watched(browser, scene) as visitor:
        page = visitor.go("/")
        page.wait_for_selector("#chart-rate canvas")
        page.wait_for_selector("#chart-lag canvas")
        page.get_by_role("link", name="1h").click()
        page.wait_for_selector("#chart-rate canvas")
        visitor.check()
        without_scripts(browser, scene)


def without_scripts(browser: Browser, scene: str) -> None:
    """The system's colours, no button that does nothing, and a word about what is missing."""
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    page = context.new_page()
    page.goto(scene)
    assert page.locator("noscript p").is_visible()
    assert page.locator("#theme, #keys, .copy, .charts :has(> figcaption)").filter(visible=True).count() == 0
    ground = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert ground == "rgb(14, 18, 22)"
    context.close()


def test_the_keyboard_reaches_every_page(scene: str, browser: Browser) -> None:
    with watched(browser, scene) as visitor:
        page = visitor.go("/")
        page.keyboard.press("g")
        page.keyboard.press("e")
        page.wait_for_url("**/events")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.name") == "type"
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.locator("tr:focus").count() == 1
        page.keyboard.press("Enter")
        page.wait_for_url("**/event?id=*")
        page.keyboard.press("?")
        assert page.locator("dialog[open]").count() == 1
        page.keyboard.press("Escape")
        theme = page.evaluate("document.documentElement.dataset.theme")
        page.keyboard.press("l")
        assert page.evaluate("document.documentElement.dataset.theme") != theme
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") != theme
        for path in ("/dead", "/dead?view=list", "/destinations", "/keys", "/relays", "/audit"):
            visitor.go(path).keyboard.press("j")
            assert (path, page.locator("tr:focus").count()) == (path, 1)
        visitor.check()


def test_a_copy_button_copies_the_whole_value(scene: str, browser: Browser) -> None:
    with watched(browser, scene) as visitor:
        visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = visitor.go("/event?id=0193c2f0-6b1e-7c3a-9f57-000000000003")
        page.get_by_role("button", name="Copy the id").click()
        page.wait_for_selector(".copy.done")
        assert page.evaluate("navigator.clipboard.readText()") == "0193c2f0-6b1e-7c3a-9f57-000000000003"
        page.click(".copy[data-copy-from=payload]")
        page.wait_for_selector(".copy.done[data-copy-from=payload]")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert json.loads(copied)["total"]["amount"] == 12345678901234567893


def test_a_time_takes_one_line_on_a_wide_screen(scene: str, browser: Browser) -> None:
    with watched(browser, scene, width=1440) as visitor:
        for path in ("/events", "/dead", "/dead?view=list", "/keys", "/audit"):
            heights = visitor.go(path).eval_on_selector_all(".list time.stamp", LINES)
            assert set(heights) == {1}, path


def test_a_time_is_shown_in_the_zone_of_the_browser(scene: str, browser: Browser) -> None:
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    for path in (
        "/events",
        "/events?live=1",
        "/dead?view=list",
        "/audit",
        f"{EVENT}{EVENTS[EventState.DEAD_LETTERED]:02x}",
    ):
        page.goto(scene + path)
        stamps = page.locator("time.stamp")
        assert (path, stamps.count()) != (path, 0)
        for stamp in stamps.all():
            written = stamp.get_attribute("datetime") or ""
            local = datetime.fromisoformat(written).astimezone(timezone(timedelta(hours=9)))
            assert stamp.inner_text() == local.isoformat(sep=" ", timespec="milliseconds").removesuffix("+09:00")
            assert stamp.get_attribute("title") == f"{written} (UTC)"
        assert page.locator(".utc").filter(visible=True).count() == 0
    context.close()


@pytest.fixture
def dead_letters(store_url: str) -> Stock:
    """Dead letters, one of them with code in it."""
    stock = filled(Stock(store_url))
    stock.record(Event("order.odd", {"note": VECTOR}, event_id="odd", headers={"x-note": VECTOR}))
    stock.settle(odd=(Dead(error="invalid note"), "orders"))
    return stock


def test_every_action_works_in_a_browser(dead_letters: Stock, tmp_path: Path, browser: Browser) -> None:
    with (
        serving(dead_letters.url, tmp_path, PILLARBOX_CONSOLE__LOGIN="none") as base,
        watched(browser, base) as visitor,
    ):
        edit_and_retry(visitor, dead_letters)
        retry_a_dead_letter(visitor, dead_letters)
        discard_a_group(visitor, dead_letters)
        pause_and_resume(visitor, dead_letters)
        replay_as_new(visitor, dead_letters)
        page = visitor.go("/audit")
        reported = page.locator("td[data-label=What]").all_text_contents()
        assert {"edit", "retry", "discard", "replay"} <= set(reported)
        visitor.check()


def edit_and_retry(visitor: Watched, stock: Stock) -> None:
    page = visitor.go("/event?id=odd")
    page.get_by_role("link", name="Edit and retry…").click()
    payload, headers = page.get_by_label("Payload"), page.get_by_label("Headers")
    assert VECTOR in headers.input_value()
    noted = payload.input_value()
    for text in (noted + VECTOR, noted.replace("{", '{\n  "more": "' + VECTOR + '",', 1)):
        payload.fill(text)
        headers.fill(f"x-note: {VECTOR}\nx-more: {VECTOR}\n")
        with page.expect_navigation():
            page.get_by_role("button", name="Review changes").click()
        visitor.provoke()
        visitor.check()
        if page.get_by_role("alert").count():
            assert payload.input_value() == text
    assert page.locator(".added").all_inner_texts() == [f'+   "more": "{VECTOR}",', f"+ x-more: {VECTOR}"]
    page.get_by_role("button", name="Retry", exact=True).click()
    assert page.get_by_role("status").inner_text().endswith("retried with edited content.")
    assert states(stock, "odd") == ["PENDING"]


def retry_a_dead_letter(visitor: Watched, stock: Stock) -> None:
    page = visitor.go("/dead?view=list&error=refused")
    page.get_by_role("link", name="dead1").click()
    page.get_by_role("button", name="Retry", exact=True).click()
    assert page.get_by_role("status").inner_text() == "1 dead letter retried."
    assert states(stock, "dead1") == ["PENDING"]


def discard_a_group(visitor: Watched, stock: Stock) -> None:
    page = visitor.go("/dead")
    page.locator("tbody .acts").get_by_text("Discard…").first.click()
    page.get_by_role("button", name="Discard 1").click()
    assert page.get_by_role("status").inner_text() == "1 dead letter discarded."
    assert states(stock, "dead2") == [""]


def pause_and_resume(visitor: Watched, stock: Stock) -> None:
    page = visitor.go("/")
    page.locator("summary", has_text="Pause all").click()
    page.get_by_role("button", name="Pause all").click()
    page.get_by_role("button", name="Resume all").click()
    page.wait_for_selector("text=Every destination is resumed.")
    post = "fetch('/api/v1/destinations/override', {method: 'POST', headers: {'content-type': 'application/json', "
    post += "'x-csrf-token': document.querySelector('meta[name=token]').content}, body: JSON.stringify("
    page.evaluate(post + "{destination: 'orders', action: 'pause'})}).then(a => a.json())")
    visitor.go("/destination?name=orders")
    page.get_by_placeholder("500/s").fill("250/s")
    page.get_by_role("button", name="Set limit").click()
    page.wait_for_selector("dd:text-is('250/s')")
    page.get_by_role("button", name="Resume").click()
    page.locator(".badge.limited").wait_for()
    visitor.go("/destinations")
    page.wait_for_selector("td[data-label=Limit]:text-is('250/s')")
    page.get_by_role("button", name="Pause orders").click()
    page.locator(".badge.paused").wait_for()


def replay_as_new(visitor: Watched, stock: Stock) -> None:
    page = visitor.go("/event?id=sent")
    page.locator("summary", has_text="Replay as new").click()
    page.get_by_role("button", name="Replay as new").click()
    assert page.get_by_role("status").inner_text().startswith("Replay ")
    assert len(stock.ask("SELECT event_id FROM outbox_event WHERE event_type = 'order.placed'")) == 5


def test_users_log_in_and_see_what_their_role_allows(shop: Stock, tmp_path: Path, browser: Browser) -> None:
    known = hashed("correct horse")
    users = [User(name="vera"), User(name="olga", role=Role.OPERATOR), User(name="ada", role=Role.ADMIN)]
    write(tmp_path / "pillarbox.users", {one.name: UserEntry(user=one, hash=known) for one in users})
    with serving(shop.url, tmp_path) as base:
        for name, buttons in {"vera": 0, "olga": 1, "ada": 1}.items():
            with watched(browser, base) as visitor:
                page = visitor.go("/keys")
                log_in(page, name)
                page.wait_for_url(f"{base}/keys")
                assert page.get_by_role("button", name="Retry key s of orders").count() == buttons
                if name == "olga":
                    lose_the_login(page, base)
                page.get_by_role("button", name="Log out").click()
                page.wait_for_url(f"{base}/login")
                assert visitor.go("/").url.startswith(f"{base}/login")
                visitor.check()


def log_in(page: Page, name: str) -> None:
    page.wait_for_url("**/login?next=*")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()


def lose_the_login(page: Page, base: str) -> None:
    """A form and a list that moves lead to the login, and from there back to their page."""
    page.context.clear_cookies()
    page.get_by_role("button", name="Retry key s of orders").click()
    log_in(page, "olga")
    page.wait_for_url(f"{base}/keys")
    page.get_by_role("link", name="Events").click()
    page.get_by_role("link", name="Follow live").click()
    page.context.clear_cookies()
    log_in(page, "olga")
    page.wait_for_url(f"{base}/events?live=1")
