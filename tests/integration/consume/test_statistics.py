"""Consumer statistics in the store: written in their own transaction, without affecting the consumer."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from pillarbox import Consumer, FixedDelay
from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import ConsumerView
from pillarbox.core.store import Retention
from pillarbox.inbox import ConsumedEvent, statistics
from pillarbox.inbox.observations import ConsumerObservation, EventProcessed, StatisticsFailed
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.sources import incoming
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory_source import MemorySource
from tests.integration.cli.conftest import Stock, sqlite_url, stock, store_url

__all__ = ["sqlite_url", "stock", "store_url"]

DAY = 86_400.0


class Till:
    """A consumer on a store of each engine that fails for events called bad."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self.source = MemorySource()
        self.observations: list[ConsumerObservation] = []
        self.consumer = Consumer(
            self.source,
            name="billing",
            transaction=stock.transaction,
            retry=FixedDelay(delay="0s", max_attempts=3),
            observers=[self.observations.append],
        )
        self.consumer.on("*")(self.bill)

    def bill(self, transaction: Any, event: ConsumedEvent) -> None:
        if event.event_id == "bad":
            raise ValueError(f"attempt {event.attempt} failed\nand this line is omitted")

    def execute(self, sql: str) -> None:
        with self._stock.transaction() as database:
            database.execute(sql)

    def store(self) -> AdminStore:
        url = self._stock.url
        return PostgresStore(url) if url.startswith("postgres") else SqliteStore(url)

    async def seen(self) -> list[ConsumerView]:
        async with aclosing(self.store()) as store:
            return await store.admin.inspection.consumers()

    async def says(self, *, processed: int) -> bool:
        return [view.processed for view in await self.seen()] == [processed]

    async def prune(self, *, inbox: float) -> None:
        async with aclosing(self.store()) as store:
            await store.pruning.prune(Retention(inbox=inbox))

    def count(self, kind: type[ConsumerObservation]) -> int:
        return sum(isinstance(one, kind) for one in self.observations)


@pytest.fixture
def till(stock: Stock) -> Till:
    return Till(stock)


async def until(condition: Callable[[], object]) -> None:
    await eventually(condition)


async def test_statistics_are_written_when_the_consumer_stops(till: Till) -> None:
    for name in ("e1", "e2", "e3", "e1", "bad"):
        till.source.queue.put(incoming(name))
    async with till.consumer:
        await until(lambda: till.source.queue.dead and till.count(EventProcessed) == 3)
    [seen] = await till.seen()
    assert (seen.name, seen.records) == ("billing", 3)
    assert (seen.processed, seen.duplicates, seen.failures, seen.dead_lettered) == (3, 1, 2, 1)
    assert seen.last_error == "ValueError: attempt 3 failed"
    assert seen.last_failed_at is not None
    assert seen.last_failed_at.tzinfo is not None


async def test_without_the_table_events_are_handled_and_statistics_kept(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "EVERY", 0.02)
    till.execute("ALTER TABLE outbox_inbox_statistics RENAME TO elsewhere")
    async with till.consumer:
        till.source.queue.put(incoming("e1"))
        await until(lambda: till.count(StatisticsFailed))
        till.source.queue.put(incoming("e2"))
        await until(lambda: till.count(EventProcessed) == 2)
        till.execute("ALTER TABLE elsewhere RENAME TO outbox_inbox_statistics")
        await eventually(lambda: till.says(processed=2))
    [failed] = [one for one in till.observations if isinstance(one, StatisticsFailed)]
    assert "outbox_inbox_statistics" in failed.error
    assert "run `pillarbox schema apply`" in failed.error


async def test_old_statistics_are_hidden_and_then_deleted(till: Till) -> None:
    till.source.queue.put(incoming("bad"))
    async with till.consumer:
        await until(lambda: till.source.queue.dead)
    await till.prune(inbox=DAY)
    assert [view.dead_lettered for view in await till.seen()] == [1]
    till.execute("UPDATE outbox_inbox_statistics SET hour = '2001-01-01T00:00:00.000Z'")
    assert await till.seen() == [ConsumerView("billing", 0)]
    await till.prune(inbox=DAY)
    assert await till.seen() == []
