"""A store with relays, destinations and events in every state, and statistics of the last minutes."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

from pillarbox import Inbox
from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.lane import RelayRegistration
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry
from pillarbox.core.statistics import OUTBOX, BacklogStatistics, ConsumerStatistics, OutcomeStatistics, to_json
from pillarbox.testing.conformance.lane_owner import Owner
from tests.integration.cli.conftest import Stock

ORDERS = 42_180_000
_REFUSED = "connection refused by smtp.example.com:587 (the mail server closed the line before STARTTLS)"
_INVALID = "422 Unprocessable Entity: field customer.vat_id: 'DE12345678' has 8 digits, expected 9"
_TIMEOUT = "no confirmation within 10 s"


def fill(stock: Stock) -> None:
    """Everything that the pages can show."""
    stock.record(*_events())
    stock.run(_work)
    _consume(stock)


def _events() -> Iterator[Event]:
    kinds = ("order.placed", "order.paid", "invoice.issued", "shipment.dispatched")
    for number in range(64):
        order = ORDERS + number // 4
        yield Event(
            kinds[number % 4],
            {
                "order": order,
                "total": {"amount": 12345678901234567890 + number, "currency": "EUR", "rate": 1.10},
                "customer": {
                    "id": 7_000_000 + number,
                    "email": f"customer{number}@example.com",
                    "vip": number % 5 == 0,
                },
                "lines": [{"sku": "PB-1840", "name": "Penny Red, mint", "count": 2}, {"sku": "PB-1841", "count": 1}],
            },
            event_id=f"0193c2f0-6b1e-7c3a-9f57-{number:012x}",
            aggregate_type="ORDER",
            aggregate_id=str(order),
            headers={"tenant": "north", "authorization": "Bearer abc"},
            correlation_id=f"cart-{order}",
            trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
        )
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    yield Event("invoice.due", {}, event_id=f"0193c2f0-6b1e-7c3a-9f57-{64:012x}", available_at=tomorrow)


async def _work(store: AdminStore) -> None:
    owner = await Owner.of(store, name="relay-a")
    await store.lanes.join(
        RelayRegistration(id="9f1c2b7e", name="relay-b", host="shop-worker-2", version="0.1.0"), lease=60
    )
    breakers = {"orders": "closed", "mailer": "open", "search": "closed", "partners": "closed"}
    await store.lanes.renew(owner.relay, lease=60, breakers=breakers)
    await store.destinations.report("mailer", error=_REFUSED, next_attempt=30)
    await store.admin.requests.override("billing", paused=True, by="ada")
    await store.admin.requests.override("search", rate_limit=500, by="ada")
    for number, message in enumerate(await owner.ready(limit=1000)):
        if number == 7:  # number 5 blocks its key
            await owner.hold(Held.WAITING, message, to="billing")
        if number == 21:
            await owner.hold(Held.PARKED, message, to="mailer")
        if (outcome := _outcome(number)) is not None:
            await owner.settle(outcome[0], message, to=outcome[1], seconds=0.0034 * (1 + number))


def _consume(stock: Stock) -> None:
    inbox = Inbox()
    with stock.transaction() as transaction:
        for number in range(12):
            for consumer in ("billing", "warehouse", "legacy-import"):
                inbox.admit(transaction, consumer, f"0193c2f0-6b1e-7c3a-9f57-{number:012x}")
        inbox.add_statistics(
            transaction, ConsumerStatistics("billing", 48_211, 37, 112, 9, f"PermanentError: {_INVALID}", 340.0)
        )
        inbox.add_statistics(transaction, ConsumerStatistics("warehouse", processed=47_905, duplicates=2))


def _outcome(number: int) -> tuple[Outcome, str] | None:
    match number % 8:
        case 0 | 1 | 2:
            return DELIVERED, "orders"
        case 3 if number < 24:
            return Dead(error=_INVALID), "billing"
        case 4 if number < 40:
            return Dead(error=_TIMEOUT), "search"
        case 5 if number == 5:
            return Dead(error=_INVALID, block=True), "billing"
        case 6:
            return Retry(delay=600, error=_REFUSED), "mailer"
        case _:
            return None


def past(file: str, *, minutes: int = 15) -> None:
    """Write the samples of the last minutes, as two relays would."""
    now = datetime.now(UTC)
    recorded = ORDERS
    with closing(sqlite3.connect(file)) as database, database:
        for tick in range(minutes * 6, -1, -1):
            at = now - timedelta(seconds=10 * tick)
            rate = 420 + 160 * math.sin(tick / 9) + 60 * math.sin(tick / 2.3)
            recorded += int(rate * 10)
            slow = 0.03 + (0.2 if 20 < tick < 34 else 0)
            carried = OutcomeStatistics()
            for n in range(int(rate * (9 if 20 < tick < 34 else 10.1))):
                carried.count_delivered(slow * (1 + (n % 97) ** 2 / 600) + (1.2 if n % 61 == 0 else 0))
            search, partners = OutcomeStatistics(retried=tick % 3), OutcomeStatistics(retried=12)
            for _ in range(40):
                search.count_delivered(slow)
            level = BacklogStatistics(recorded=recorded, backlog=1200, oldest=3.0, dead=7)
            reported: dict[str, OutcomeStatistics | BacklogStatistics] = {
                "orders": carried,
                "search": search,
                "partners": partners,
                OUTBOX: level,
            }
            moment = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            for destination, values in reported.items():
                database.execute(
                    "INSERT INTO outbox_sample (at, relay, destination, statistics) VALUES (?, 'relay-1', ?, ?)",
                    (moment, destination, json.dumps(to_json(values))),
                )
