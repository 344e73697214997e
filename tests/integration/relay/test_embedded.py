"""An outbox without servers: SQLite, and handlers in the same process."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pillarbox import Event, ExponentialBackoff, Handlers, Outbox, PermanentError, Relay
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.lookup import find_event


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        await store.schema.apply()
        yield store


@pytest.fixture
def record(tmp_path: Path, store: SqliteStore) -> object:
    def record(*events: Event) -> None:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
            Outbox().record(connection, *events)

    return record


async def test_every_handler_of_a_type_gets_the_event_in_order(store: SqliteStore, record: object) -> None:
    assert callable(record)
    handlers = Handlers()
    seen: list[tuple[str, int]] = []

    @handlers.on("order.placed", name="mailer")
    async def mail(event: object, context: object) -> None:
        seen.append(("mailer", event.payload["n"]))  # type: ignore[attr-defined]

    @handlers.on("order.*", name="ledger")
    def book(event: object, context: object) -> None:
        seen.append(("ledger", event.payload["n"]))  # type: ignore[attr-defined]

    record(*(Event("order.placed", {"n": number}, key="one") for number in range(20)))
    await Relay(store=store, transports={"handlers": handlers}).run_until_empty()
    for name in ("mailer", "ledger"):
        assert [number for who, number in seen if who == name] == list(range(20))


async def test_a_failed_handler_is_retried_and_a_permanent_error_is_dead_lettered(
    store: SqliteStore, record: object
) -> None:
    assert callable(record)
    handlers = Handlers()
    attempts: list[int] = []

    @handlers.on("flaky", name="flaky")
    async def flaky(event: object, context: object) -> None:
        attempts.append(context.attempt)  # type: ignore[attr-defined]
        if len(attempts) < 3:
            raise ValueError("not yet")

    @handlers.on("hopeless", name="hopeless")
    async def hopeless(event: object, context: object) -> None:
        raise PermanentError("never")

    record(Event("flaky", {}, event_id="f"), Event("hopeless", {}, event_id="h"))
    relay = Relay(
        store=store,
        transports={"handlers": handlers},
        retry=ExponentialBackoff(base="0s", max_delay="0s", jitter="none"),
    )
    await relay.run_until_empty()
    assert attempts == [1, 2, 3]
    [failed] = await find_event(store, "h")
    assert (failed.status, failed.last_error) == ("FAILED", "PermanentError: never")
    [delivered] = await find_event(store, "f")
    assert (delivered.status, delivered.attempts) == ("PUBLISHED", 2)
