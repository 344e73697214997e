"""The pages of events and dead letters of Django's admin in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.serving import chromium
from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.test_django import PROJECT, VERSION, Project, copied
from tests.servers.availability import available

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

expect.set_options(timeout=60_000)
EVENTS, DEAD = "/admin/pillarbox/event/", "/admin/pillarbox/deadletter/"
FILL = """
from django.db import transaction
from pillarbox import Event
from pillarbox.integrations.django import record
from pillarbox.integrations.django.testing import run_relay
with transaction.atomic():
    for number in range(4):
        why = f"<script>alert({number})</script> " + "long " * 40
        record(Event("order.failed", {"why": why}, key=f"customer {number}"))
        record(Event("order.placed", {"total": number}, key=f"customer {number}"))
run_relay()
with transaction.atomic():
    record(Event("order.placed", {"total": 9, "card": "4111"}, headers={"authorization": "secret"}))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with available(chromium) as opened:
        yield opened


@pytest.fixture
def address(environment: MakeEnvironment, tmp_path: Path) -> Iterator[str]:
    """A server with a few events of every kind."""
    project = Project(environment(f"django{VERSION}"), copied(PROJECT, tmp_path), {"DEBUG": "1"})
    project.manage("migrate")
    project.manage(
        "createsuperuser", "--noinput", "--username", "ada", "--email", "a@example.org", DJANGO_SUPERUSER_PASSWORD="pw"
    )
    project.manage("shell", "--no-imports", "-c", FILL)
    with project.serving() as served:
        yield served


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page of a user who is logged in; an error of the page fails the test."""
    context = browser.new_context(base_url=address)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if is_error(message) else None)
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto("/admin/")
    page.fill("#id_username", "ada")
    page.fill("#id_password", "pw")
    page.click("input[type=submit]")
    page.wait_for_selector("#user-tools")
    yield page
    context.close()
    assert problems == []


def is_error(message: ConsoleMessage) -> bool:
    """Whether a message is about an error of our pages; Django's admin has no icon."""
    return message.type == "error" and not message.location["url"].endswith("/favicon.ico")


def test_an_operator_retries_one_dead_letter_and_discards_all_others(page: Page) -> None:
    page.goto("/admin/")
    page.click("text=Dead letters")
    expect(page.locator("#result_list tbody tr")).to_have_count(4)
    page.locator("input.action-select").first.check()
    expect(page.locator(".action-counter")).to_have_text("1 of 4 selected")
    page.select_option("select[name=action]", "retry")
    page.click("button[name=index]")
    expect(page.locator("#content")).to_contain_text("Retry 1 dead letter?")
    page.click("text=Yes, retry")
    expect(page.locator(".messagelist")).to_contain_text("1 dead letter retried.")
    expect(page.locator("#result_list tbody tr")).to_have_count(3)

    page.check("#action-toggle")
    page.click(".question a")
    page.select_option("select[name=action]", "discard")
    page.click("button[name=index]")
    expect(page.locator("#content")).to_contain_text("Discard 3 dead letters?")
    page.click("text=No, take me back")
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    page.check("#action-toggle")
    page.click(".question a")
    page.select_option("select[name=action]", "discard")
    page.click("button[name=index]")
    page.click("text=Yes, discard")
    expect(page.locator(".messagelist")).to_contain_text("3 dead letters discarded.")
    expect(page.locator("#changelist")).to_contain_text("No dead letters.")


def test_search_filters_and_details(page: Page) -> None:
    page.goto(EVENTS)
    page.click("#changelist-filter >> text='Ready'")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    page.click("#changelist-filter >> text=All")
    page.select_option("select[name=in]", "key")
    page.fill("#searchbar", "customer 2")
    page.click("#changelist-search input[type=submit]")
    # An event with two handlers is a message for each.
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    page.click("#result_list tbody tr >> text=order.failed >> xpath=.. >> a")
    expect(page.locator("pre")).to_contain_text("<script>alert(2)</script>")
    expect(page.locator(".pillarbox-detail")).to_contain_text("failing")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_fit(page: Page, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    for url in (EVENTS, DEAD):
        page.goto(url)
        check_width(page, width)
        check_arrangement(page, width)
        page.click("#result_list tbody th a >> nth=0")
        page.wait_for_selector(".pillarbox-detail")
        check_width(page, width)
    page.goto(DEAD)
    page.locator("input.action-select").first.check()
    page.select_option("select[name=action]", "discard")
    page.click("button[name=index]")
    check_width(page, width)


def check_arrangement(page: Page, width: int) -> None:
    """The filter is beside the list, or below it on a phone, and the breadcrumbs have the colours of the admin."""
    rows, choices = (page.locator(name).bounding_box() for name in ("#result_list", "#changelist-filter"))
    assert rows is not None
    assert choices is not None
    assert choices["x" if width > 767 else "y"] > rows["x" if width > 767 else "y"]
    assert (choices["y"] < rows["y"] + rows["height"]) == (width > 767)
    colour = page.locator(".breadcrumbs").evaluate("element => getComputedStyle(element).backgroundColor")
    assert colour != "rgba(0, 0, 0, 0)"


def check_width(page: Page, width: int) -> None:
    """The page itself does not scroll sideways; a wide table does so in its frame."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
