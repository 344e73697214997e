"""A consumer as a handler of a relay: same transaction and inbox, no broker."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing, contextmanager
from pathlib import Path

import pytest

from pillarbox import Consumer, Event, FixedDelay, Handlers, Outbox, Relay
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerObservation, DuplicateSkipped, EventProcessed
from pillarbox.stores.sqlite import SqliteStore

OUTBOX = Outbox()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with aclosing(SqliteStore(tmp_path / "shop.db", ledger=False)) as store:
        await store.schema.apply()
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
            connection.execute("CREATE TABLE effect (event_id TEXT, attempt INTEGER)")
        yield store


class Till:
    """A consumer on a SQLite file, and the relays that call it."""

    def __init__(self, path: Path, store: SqliteStore) -> None:
        self._path = path
        self._store = store
        self.observations: list[ConsumerObservation] = []
        self.away = False
        self.consumer = Consumer(name="billing", transaction=self._consuming, observers=[self.observations.append])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, isolation_level="IMMEDIATE")) as connection, connection:
            yield connection

    @contextmanager
    def _consuming(self) -> Iterator[sqlite3.Connection]:
        if self.away:
            raise sqlite3.OperationalError("the file is unavailable")
        with self.transaction() as connection:
            yield connection

    def effect(self, connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        connection.execute("INSERT INTO effect VALUES (?, ?)", (event.event_id, event.attempt))

    async def carry(self, *events: Event) -> None:
        """Record the events, and run a relay until nothing can be sent."""
        with self.transaction() as connection:
            OUTBOX.record(connection, *events)
        handlers, retry = Handlers(), FixedDelay(delay="0s", max_attempts=3)
        handlers.add(self.consumer)
        await Relay(store=self._store, transports={"handlers": handlers}, retry=retry).run_until_empty()
        await handlers.aclose()

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self._path)) as connection:
            return connection.execute(sql).fetchall()


async def test_a_function_is_called_in_a_transaction(tmp_path: Path, store: SqliteStore) -> None:
    async with aclosing(store):
        till = Till(tmp_path / "shop.db", store)
        till.consumer.on("order.*")(till.effect)
        await till.carry(Event("order.placed", {}, event_id="e1"), Event("order.paid", {}, event_id="e2"))
        assert sorted(till.ask("SELECT event_id FROM effect")) == [("e1",), ("e2",)]
        assert sorted(till.ask("SELECT consumer, event_id FROM outbox_inbox")) == [
            ("billing", "e1"),
            ("billing", "e2"),
        ]
        assert sorted(type(one).__name__ for one in till.observations) == ["EventProcessed", "EventProcessed"]


async def test_a_duplicate_after_the_commit_is_skipped(tmp_path: Path, store: SqliteStore) -> None:
    async with aclosing(store):
        till = Till(tmp_path / "shop.db", store)
        till.consumer.on("*")(till.effect)
        await till.carry(Event("order.placed", {}, event_id="e1"))
        await till.carry(Event("order.placed", {}, event_id="e1"))
        assert till.ask("SELECT * FROM effect") == [("e1", 1)]
        assert [type(one) for one in till.observations] == [EventProcessed, DuplicateSkipped]
        assert till.ask("SELECT sum(processed), sum(duplicates), sum(failures) FROM outbox_inbox_statistics") == [
            (1, 1, 0)
        ]


async def test_a_failure_is_rolled_back_and_retried_by_the_relay(tmp_path: Path, store: SqliteStore) -> None:
    async with aclosing(store):
        till = Till(tmp_path / "shop.db", store)

        @till.consumer.on("order.placed")
        async def bill(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
            till.effect(connection, event)
            OUTBOX.record(connection, Event("invoice.sent", {}).caused_by(event))
            if event.attempt < 3:
                raise ValueError("not yet")

        @till.consumer.on("invoice.sent")
        async def sent(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
            connection.execute("INSERT INTO effect VALUES (?, 0)", (event.causation_id,))

        await till.carry(Event("order.placed", {}, event_id="e1"))
        assert till.ask("SELECT * FROM effect ORDER BY attempt") == [("e1", 0), ("e1", 3)]


async def test_a_permanent_failure_is_a_dead_letter_of_the_outbox(tmp_path: Path, store: SqliteStore) -> None:
    async with aclosing(store):
        till = Till(tmp_path / "shop.db", store)

        @till.consumer.on("order.placed")
        def bill(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
            till.effect(connection, event)
            raise ValueError("never")

        await till.carry(Event("order.placed", {}, event_id="e1"))
        assert till.ask("SELECT * FROM effect") == []
        assert till.ask("SELECT event_id, destination, attempts FROM outbox_dead_letter") == [("e1", "billing", 3)]
        assert till.ask("SELECT sum(failures), sum(dead_lettered), max(last_error) FROM outbox_inbox_statistics") == [
            (3, 0, "ValueError: never")
        ]


async def test_an_unavailable_transaction_counts_no_attempt(tmp_path: Path, store: SqliteStore) -> None:
    async with aclosing(store):
        till = Till(tmp_path / "shop.db", store)
        till.consumer.on("*")(till.effect)
        till.away = True
        await till.carry(Event("order.placed", {}, event_id="e1"))
        assert till.ask("SELECT event_id, attempts FROM outbox_message WHERE deferrals > 0") == [("e1", 0)]
        till.away = False
        await till.carry(Event("order.placed", {}, event_id="e2"))
        assert sorted(till.ask("SELECT event_id FROM effect")) == [("e1",), ("e2",)]
        assert till.ask("SELECT sum(processed), sum(failures) FROM outbox_inbox_statistics") == [(2, 0)]
