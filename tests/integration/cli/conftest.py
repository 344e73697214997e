"""A store of each engine with tables, and ways to bring events into any state."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry
from pillarbox.core.statistics import OutcomeStatistics
from pillarbox.record import Outbox
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import find_event
from tests.integration.cli.work_queue import WorkQueue
from tests.servers.rabbitmq import RabbitMQServer

T = TypeVar("T")
Settled = tuple[Outcome, str]


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'shop.db')}"


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def store_url(request: pytest.FixtureRequest) -> str:
    """A store with tables: one of each engine."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def work_queue(rabbitmq_server: RabbitMQServer, tmp_path: Path) -> Iterator[WorkQueue]:
    """A work queue and its dead-letter queue on the shared broker."""
    made = WorkQueue(rabbitmq_server.url(), tmp_path)
    yield made
    made.remove()


class Stock:
    """The contents of a store, and ways to change them."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, work: Callable[[AdminStore], Awaitable[T]]) -> T:
        async def with_store() -> T:
            store: AdminStore = PostgresStore(self.url) if self.url.startswith("postgres") else SqliteStore(self.url)
            try:
                return await work(store)
            finally:
                await store.aclose()

        return asyncio.run(with_store())

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A transaction of an application."""
        if self.url.startswith("postgres"):
            with psycopg.connect(self.url) as database:
                yield database
        else:
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file, file:
                yield file

    def record(self, *events: Event) -> None:
        with self.transaction() as transaction:
            Outbox().record(transaction, *events)

    def settle(self, **outcomes: Settled) -> None:
        """Settle events like a relay that stops at once: an outcome and a destination for each."""

        async def work(store: AdminStore) -> None:
            owner = await Owner.of(store)
            found = {message.event_id: message for message in await owner.ready()}
            for event_id, (outcome, destination) in outcomes.items():
                await owner.settle(outcome, found[event_id], to=destination)
            await store.statistics.add(
                owner.relay, {destination: OutcomeStatistics() for _, destination in outcomes.values()}
            )
            await store.lanes.release(owner.relay)

        self.run(work)

    def delay_key(self, first: str, *waiting: str, to: str = "orders") -> None:
        """Like a relay that stops at once: the first event is retried in ten minutes, and the others wait for it."""

        async def work(store: AdminStore) -> None:
            owner = await Owner.of(store)
            found = {message.event_id: message for message in await owner.ready()}
            await owner.settle(Retry(delay=600, error="refused"), found[first], to=to)
            await owner.hold(Held.WAITING, *(found[name] for name in waiting), to=to)
            await store.lanes.release(owner.relay)

        self.run(work)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, without the store."""
        if self.url.startswith("postgres"):
            with psycopg.connect(self.url) as database:
                return database.execute(sql.encode()).fetchall()
        with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file:
            return file.execute(sql).fetchall()

    def states(self, *event_ids: str) -> list[str]:
        """The status of each event, in order; '' if it does not exist."""

        async def work(store: AdminStore) -> list[str]:
            found = [await find_event(store, event_id) for event_id in event_ids]
            return [row.status if row else "" for row in (next(iter(rows), None) for rows in found)]

        return self.run(work)


@pytest.fixture
def stock(store_url: str) -> Stock:
    return Stock(store_url)


@pytest.fixture
def with_dead_letters(stock: Stock) -> Stock:
    """Two dead letters of one key, a blocked, a delivered and a pending event, on each engine."""
    return filled(stock)


@pytest.fixture
def shop(sqlite_url: str) -> Stock:
    """The same on SQLite, for tests that do not depend on the engine."""
    return filled(Stock(sqlite_url))


def filled(stock: Stock) -> Stock:
    names = {"dead1": "k", "dead2": "k", "stuck": "s", "sent": None, "fresh": None}
    stock.record(*(Event("order.placed", {}, event_id=name, key=key) for name, key in names.items()))
    stock.settle(
        dead1=(Dead(error="refused"), "orders"),
        dead2=(Dead(error="timeout of 30 s"), "mail"),
        stuck=(Dead(error="refused", block=True), "orders"),
        sent=(DELIVERED, "orders"),
    )
    return stock
