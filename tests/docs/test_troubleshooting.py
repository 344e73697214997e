"""The page on troubleshooting: what it says of the four symptoms is what its commands show."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Event, FixedDelay, Handlers, Outbox, PermanentError, Relay, Route, UnavailableError
from pillarbox.admin.overview import LaneView, Overview, RelayView
from pillarbox.core.store import EVERYWHERE, Override
from pillarbox.ops.health import destinations_of, flow
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent
from pillarbox.transports.webhook.responses import result_of
from tests.docs.pages import ROOT
from tests.integration.cli.running import pillarbox

PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")


def said_in(heading: str) -> list[str]:
    """What stands as code in the first column of the table under a heading, or of the first table."""
    table = PAGE[PAGE.index(heading) :].split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return [words for row in table.splitlines() for words in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def overview(*breakers: str, owned: int = 64, lease: float = 10) -> Overview:
    relays = [RelayView(str(n), "", "host", lease, {"orders": state}) for n, state in enumerate(breakers)]
    lanes = [LaneView(n, "0" if n < owned else None, 1, 0) for n in range(64)]
    return Overview(1, 5.0, True, 0, lanes, relays)


def sentence(seen: Overview, *overrides: Override) -> str:
    paused = any(row.destination == EVERYWHERE for row in overrides)
    found = flow(seen, destinations_of(seen.relays, overrides), paused=paused)
    return f"{found.state}: {found.reason}"


def test_status_agrees_with_the_page() -> None:
    held = Override("orders", True, None, None, None)
    sentences = [
        sentence(overview()),
        sentence(overview("closed"), Override(EVERYWHERE, True, None, None, None)),
        sentence(overview("closed", owned=0)),
        sentence(overview("open")),
        sentence(overview("half-open")),
        sentence(overview("closed"), held._replace(last_error=f"{result_of(410, host='https://partner.example')}")),
        sentence(overview("closed"), held),
        sentence(overview("closed"), held._replace(paused=False, breaker="open")),
        sentence(overview("closed"), held._replace(paused=False, breaker="closed", last_error="refused")),
        sentence(overview("closed", owned=52)),
        sentence(overview("closed")._replace(oldest=61.0, oldest_event="evt-42")),
        sentence(overview("closed")),
    ]
    reported = said_in("Run this first")
    assert len(reported) == len(sentences)
    for words, shown in zip(reported, sentences, strict=True):
        assert words in shown


@pytest.mark.parametrize("words", said_in("### The destination is unavailable"))
def test_a_documented_error_of_a_destination_exists(words: str) -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src/pillarbox").rglob("*.py"))
    assert words in re.sub(r"\{[^{}]*\}", "", code.replace("for {where}", "for exchange"))


@pytest.mark.parametrize("words", ["relay started", "store failed", "from a crashed relay", "lease lost"])
def test_a_documented_log_line_exists(words: str) -> None:
    assert words in PAGE
    assert words in (ROOT / "src/pillarbox/telemetry/logs.py").read_text(encoding="utf-8")


class Shop:
    """A store with one event in it, a relay when it is wanted, and the commands of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder / 'shop.db'}"
        asyncio.run(self._with_store(lambda store: store.schema.apply()))
        self.record(Event("order.placed", {"id": 42}, event_id="evt-42", key="ORDER:42"))

    def record(self, event: Event) -> None:
        with closing(sqlite3.connect(self.folder / "shop.db")) as file, file:
            Outbox().record(file, event)

    def deliver(self, error: Exception | None, **more: Any) -> None:
        """A relay with one handler, `orders`, that raises this."""
        handlers = Handlers()

        @handlers.on("*", name="orders")
        async def handle(event: ReceivedEvent, context: HandlerContext) -> None:
            if error is not None:
                raise error

        more.setdefault("transports", {"handlers": handlers})
        more.setdefault("retry", FixedDelay(delay="1h"))  # by default a retry may be due at once
        if more.get("routes"):
            more["destinations"] = {"orders": handlers.to("orders")}
        asyncio.run(self._with_store(lambda store: Relay(store=store, **more).run_until_empty()))

    async def _with_store(self, work: Any) -> None:
        store = SqliteStore(self.url)
        try:
            await work(store)
        finally:
            await store.aclose()

    def typed(self, *words: str) -> str:
        """What a command of the page shows; the page has it."""
        assert f"pillarbox {' '.join(words)}" in PAGE
        done = pillarbox(*words, PILLARBOX_STORE=self.url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def event(self, event_id: str = "evt-42") -> dict[str, Any]:
        shown = json.loads(pillarbox("events", "show", event_id, "--json", PILLARBOX_STORE=self.url).stdout)
        found: dict[str, Any] = shown["events"][0] | {"counted": [each["counted"] for each in shown["failures"]]}
        return found


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_pending_because_no_relay_works(shop: Shop) -> None:
    assert shop.typed("status").startswith("stopped: no relay is running")
    assert "ready" in shop.typed("events", "list", "--status", "pending")
    assert (shop.event()["destination"], shop.event()["retry_count"]) == ("", 0)


def test_pending_because_the_destination_is_unavailable(shop: Shop) -> None:
    shop.deliver(UnavailableError("closed for the night"))
    found = shop.event()
    assert (found["status"], found["attempts"], found["last_error"].split(":")[0]) == ("PENDING", 0, "UnavailableError")
    assert found["retry_count"] > 0
    assert not any(found["counted"])
    assert found["state"] == "ready"  # once its relay has stopped; "parked" before


def test_pending_after_an_earlier_one_of_its_key(shop: Shop) -> None:
    shop.record(Event("order.paid", {}, event_id="evt-43", key="ORDER:42"))
    shop.deliver(ValueError("not today"))
    later = shop.event("evt-43")
    assert (later["status"], later["retry_count"], later["last_error"]) == ("PENDING", 0, None)
    shown = shop.typed("events", "list", "--key", "ORDER:42")
    assert "evt-42" in shown
    assert "evt-43" in shown


def test_pending_without_a_route(shop: Shop) -> None:
    shop.deliver(None, routes=[Route(event_type="invoice.*", to=["orders"])])
    assert (shop.event()["status"], "no route for 'order.placed'" in shop.event()["last_error"]) == ("PENDING", True)
    assert "`no route for 'order.placed'`" in PAGE


def test_a_high_retry_count_is_counted_where_the_event_is_at_fault(shop: Shop) -> None:
    shop.deliver(ValueError("not today"))
    found = shop.event()
    assert (found["status"], found["attempts"], found["counted"]) == ("PENDING", 1, [True])
    assert found["last_error"].startswith("RejectedError")
    assert "counted" in shop.typed("events", "show", "evt-42")


def test_a_dead_letter_that_is_retried(shop: Shop) -> None:
    shop.deliver(PermanentError("no such customer"))
    assert "no such customer" in shop.typed("dead", "list")
    assert "FAILED" in shop.typed("dead", "show", "evt-42")
    shop.typed("dead", "retry", "evt-42")
    shop.deliver(None)
    assert shop.event()["status"] == "PUBLISHED"


def test_a_duplicate_is_rejected_while_the_first_is_pending(shop: Shop) -> None:
    done = pillarbox("record", "order.placed", "--id", "evt-42", PILLARBOX_STORE=shop.url)
    assert (done.returncode, "evt-42" in done.stderr) == (1, True)
