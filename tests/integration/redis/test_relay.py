"""A relay with Redis: from the outbox through a stream to a consumer with an inbox, also with outages."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Consumer, Destination, Event, FixedDelay, Outbox, PermanentError, Relay, Route
from pillarbox.core.observations import Observation, Sending
from pillarbox.inbox import ConsumedEvent
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.redis import RedisTransport
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.conftest import MakeSource, MakeTransport
from tests.integration.redis.reading import entries, ids
from tests.servers.redis import RedisServer

KEY = "hot"


class Relayed:
    """Events of one key in a store, and the batches in which a relay sent them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.batches: list[list[str]] = []

    def record(self, *events: Event) -> None:
        with self.store.transaction() as transaction:
            Outbox().record(transaction, *events)

    @asynccontextmanager
    async def relay(self, transport: RedisTransport, stream: str, ordering: Any) -> AsyncIterator[None]:
        async with Relay(
            store=self.store,
            transports={"redis": transport},
            destinations={"hot": Destination(RedisTransport.to(stream=stream), ordering=ordering)},
            routes=[Route(to=["hot"])],
            retry=FixedDelay(delay="50ms", max_attempts="unlimited"),
            observers=[self._observe],
        ):
            yield

    async def delivered(self, count: int) -> None:
        await eventually(lambda: len(self.store._tables.history) >= count)

    def _observe(self, observation: Observation) -> None:
        if isinstance(observation, Sending):
            self.batches.append([message.event_id for message in observation.messages])


def events(names: list[str], size: int = 0) -> list[Event]:
    return [Event("thing.happened", bytes(size), event_id=name, key=KEY, content_type="x/y") for name in names]


async def test_pipelined_events_of_a_key_go_in_few_batches_in_order(
    make: MakeTransport, redis_server: RedisServer, stream: str
) -> None:
    relayed, names = Relayed(), [f"{number:03}" for number in range(300)]
    relayed.record(*events(names))
    async with relayed.relay(make(), stream, "pipelined"):
        await relayed.delivered(len(names))
    assert ids(redis_server, stream) == names
    assert len(relayed.batches) < 10


async def test_a_connection_lost_in_the_middle_keeps_first_deliveries_in_order(
    make: MakeTransport, redis_server: RedisServer, stream: str
) -> None:
    relayed, names = Relayed(), [f"{number:03}" for number in range(100)]
    relayed.record(*events(names, 5_000))
    async with Proxy(redis_server.port, rate=250_000) as slow:
        async with relayed.relay(make(f"redis://127.0.0.1:{slow.port}"), stream, "pipelined"):
            await relayed.delivered(1)
            slow.silence()  # what arrives from here on is not confirmed

            async def in_the_middle() -> bool:
                return 10 <= len(await asyncio.to_thread(ids, redis_server, stream)) < 90

            await eventually(in_the_middle)
            await slow.reset()
            await relayed.delivered(len(names))
        assert slow.accepted > 1
    arrived = ids(redis_server, stream)
    assert len(arrived) > len(names), "nothing was sent twice: the connection was not lost in the middle"
    assert list(dict.fromkeys(arrived)) == names


@pytest.mark.parametrize("ordering", ["strict", "pipelined"])
async def test_first_deliveries_stay_in_order_when_the_server_is_killed(
    make: MakeTransport, private_redis: RedisServer, stream: str, ordering: str
) -> None:
    relayed, names = Relayed(), [f"{number:04}" for number in range(600)]
    async with relayed.relay(make(private_redis.url()), stream, ordering):
        for start in range(0, 600, 200):
            relayed.record(*events(names[start : start + 200], 1_000))
            await relayed.delivered(start + 20)
            await asyncio.to_thread(private_redis.kill)
            await asyncio.to_thread(private_redis.start)
        await relayed.delivered(len(names))
    assert list(dict.fromkeys(ids(private_redis, stream))) == names


async def test_an_event_that_is_refused_for_lack_of_memory_is_sent_again_before_later_ones_of_its_key(
    make: MakeTransport, private_redis: RedisServer, stream: str
) -> None:
    relayed, names = Relayed(), [f"{number:03}" for number in range(80)]
    with private_redis.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 3 * 1024 * 1024)
        relayed.record(*events(names, 100_000))
        async with relayed.relay(make(private_redis.url()), stream, "strict"):
            await eventually(lambda: bool(relayed.store._tables.attempts))
            client.config_set("maxmemory", 0)
            await relayed.delivered(len(names))
    assert ids(private_redis, stream) == names


class Shop:
    """A database with an outbox, an inbox and the effects of a consumer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = SqliteStore(path)

    async def create(self) -> None:
        await self.store.schema.apply()
        with self.transaction() as connection:
            connection.execute("CREATE TABLE invoice (event_id TEXT)")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, isolation_level="IMMEDIATE", timeout=30)) as connection, connection:
            yield connection

    def record(self, *new: Event) -> None:
        with self.transaction() as connection:
            Outbox().record(connection, *new)

    def invoices(self) -> list[str]:
        with self.transaction() as connection:
            return [row[0] for row in connection.execute("SELECT event_id FROM invoice ORDER BY rowid")]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    shop = Shop(tmp_path / "shop.db")
    await shop.create()
    yield shop
    await shop.store.aclose()


async def test_every_event_has_one_effect_through_outages_of_redis(
    make: MakeTransport, consume: MakeSource, private_redis: RedisServer, stream: str, shop: Shop
) -> None:
    failed: set[str] = set()
    consumer = Consumer(
        consume(private_redis.url(), group="billing"),
        name="billing",
        transaction=shop.transaction,
        retry=FixedDelay(delay="50ms", max_attempts=5),
    )

    @consumer.on("order.placed")
    def bill(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        if event.payload["n"] % 10 == 3 and event.event_id not in failed:
            failed.add(event.event_id)
            raise RuntimeError("fails once")
        if event.payload["n"] == 7:
            raise PermanentError("never succeeds")
        connection.execute("INSERT INTO invoice VALUES (?)", (event.event_id,))

    names = [f"e{n:03}" for n in range(90)]
    relay = Relay(
        store=shop.store,
        transports={"redis": make(private_redis.url())},
        destinations={"orders": Destination(RedisTransport.to(stream=stream))},
        routes=[Route(to=["orders"])],
    )
    async with relay, consumer:
        for start in range(0, 90, 30):
            shop.record(*(Event("order.placed", {"n": n}, event_id=names[n]) for n in range(start, start + 30)))
            await eventually(lambda start=start: len(shop.invoices()) > start)  # type: ignore[misc]
            await asyncio.to_thread(private_redis.kill if start else private_redis.stop)
            await asyncio.to_thread(private_redis.start)
        await eventually(lambda: len(shop.invoices()) >= 89)
        await eventually(lambda: len(entries(private_redis, f"{stream}.dlq")) == 1)
    assert sorted(shop.invoices()) == [name for name in names if name != "e007"]
    [dead] = entries(private_redis, f"{stream}.dlq")
    assert (dead.text("id"), dead.text("pillarbox-attempts")) == ("e007", "1")
    assert "never succeeds" in dead.text("pillarbox-reason")
