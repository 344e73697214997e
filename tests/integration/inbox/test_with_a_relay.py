"""Handlers of a relay: a duplicate has its effect and its caused events once."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pillarbox import Event, FixedDelay, Handlers, Inbox, Outbox, Relay, RelayConfig, RetentionConfig
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent

inbox, outbox = Inbox(), Outbox()


@pytest.fixture
async def store(sqlite_path: str) -> AsyncIterator[SqliteStore]:
    async with aclosing(SqliteStore(Path(sqlite_path))) as store:
        yield store


async def test_a_handler_that_fails_after_its_commit_has_its_effect_once(store: SqliteStore, sqlite_path: str) -> None:
    handlers = Handlers()
    calls: list[int] = []

    @inbox.once("billing")
    def bill(connection: sqlite3.Connection, event: ReceivedEvent) -> None:
        outbox.record(connection, Event("invoice.sent", {}, destination="printer").caused_by(event))

    @handlers.on("order.placed", name="billing")
    def on_order(event: ReceivedEvent, context: HandlerContext) -> None:
        with closing(sqlite3.connect(sqlite_path)) as connection, connection:
            bill(connection, event)
        calls.append(context.attempt)
        if len(calls) < 3:
            raise ValueError("the result is lost")

    printed: list[ReceivedEvent] = []

    @handlers.on("invoice.sent", name="printer")
    def print_out(event: ReceivedEvent, context: HandlerContext) -> None:
        printed.append(event)

    with closing(sqlite3.connect(sqlite_path)) as connection, connection:
        outbox.record(connection, Event("order.placed", {}, event_id="order", correlation_id="visit", trace_id="t"))
    retry = FixedDelay(delay=0, max_attempts=5)
    await Relay(store=store, transports={"handlers": handlers}, retry=retry).run_until_empty()
    assert calls == [1, 2, 3]
    assert [(event.causation_id, event.correlation_id, event.trace_id) for event in printed] == [
        ("order", "visit", "t")
    ]


async def test_a_handler_that_fails_before_its_commit_is_admitted_again(store: SqliteStore, sqlite_path: str) -> None:
    handlers = Handlers()
    admitted: list[bool] = []

    @handlers.on("order.placed", name="billing")
    def on_order(event: ReceivedEvent, context: HandlerContext) -> None:
        with closing(sqlite3.connect(sqlite_path)) as connection, connection:
            admitted.append(inbox.admit(connection, "billing", event))
            if context.attempt < 3:
                raise ValueError("not yet")

    with closing(sqlite3.connect(sqlite_path)) as connection, connection:
        outbox.record(connection, Event("order.placed", {}))
    retry = FixedDelay(delay=0, max_attempts=5)
    await Relay(store=store, transports={"handlers": handlers}, retry=retry).run_until_empty()
    assert admitted == [True, True, True]


async def test_a_relay_deletes_expired_inbox_records(store: SqliteStore, sqlite_path: str) -> None:
    def records() -> int:
        with closing(sqlite3.connect(sqlite_path)) as connection:
            count: int = connection.execute("SELECT count(*) FROM outbox_inbox").fetchone()[0]
            return count

    with closing(sqlite3.connect(sqlite_path)) as connection, connection:
        assert inbox.admit(connection, "billing", "e1")

    async def gone() -> bool:
        return records() == 0

    async with Relay(
        store=store,
        transports={"handlers": Handlers()},
        config=RelayConfig(retention=RetentionConfig(inbox="0s", dead="0s")),
    ):
        await eventually(gone)
