"""Consuming: a relay on SQLite, JetStream and a consumer with an inbox, end to end; and what only JetStream has."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig

from pillarbox import ConsumedEvent, Consumer, Event, FixedDelay, Outbox, Relay
from pillarbox.core.errors import UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.schemes import open_source
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.sources.receive import take, take_through_outages, taken_ids
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsSource, NatsTransport
from tests.integration.nats.streams import jetstream, put, stored
from tests.integration.rabbitmq.proxy import Proxy


class Shop:
    """A file with the tables of the outbox, of the inbox and of the effects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE effect (event_id text NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, isolation_level="IMMEDIATE", timeout=30)) as connection, connection:
            yield connection

    def record(self, *events: Event) -> None:
        with self.transaction() as connection:
            Outbox().record(connection, *events)

    def effects(self) -> list[str]:
        with closing(sqlite3.connect(self.path)) as connection:
            return [row[0] for row in connection.execute("SELECT event_id FROM effect ORDER BY rowid")]


@pytest.fixture
def shop(tmp_path: Path, sqlite_template: Path) -> Shop:
    return Shop(Path(shutil.copy(sqlite_template, tmp_path / "shop.db")))


@asynccontextmanager
async def running(consumer: Consumer) -> AsyncIterator[None]:
    task = asyncio.create_task(consumer.run())
    try:
        yield
    finally:
        consumer.stop()
        async with asyncio.timeout(30):
            await task


async def test_events_reach_the_inbox_once_and_in_order_of_their_key_through_outages(
    shop: Shop, proxy: Proxy, name: str, url: str
) -> None:
    through = f"nats://127.0.0.1:{proxy.port}"
    transport = NatsTransport(through, send_timeout="2s")
    store = SqliteStore(str(shop.path))
    source = open_source(through, name, group="billing", ack_wait="2s")
    consumer = Consumer(source, name="billing", transaction=shop.transaction, retry=FixedDelay(delay="50ms"))

    @consumer.on("*")
    def bill(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        connection.execute("INSERT INTO effect VALUES (?)", (event.event_id,))

    recorded = [f"{key}-{number}" for number in range(30) for key in "ab"]
    async with Relay(store=store, transports={"nats": transport}), running(consumer):
        for start in range(0, len(recorded), 20):
            events = [Event(name, {}, event_id=one, key=one[0]) for one in recorded[start : start + 20]]
            await asyncio.to_thread(shop.record, *events)
            await eventually(lambda: asyncio.to_thread(shop.effects), within=60)
            await proxy.cut()
            await proxy.heal()

        async def all_there() -> bool:
            return len(await asyncio.to_thread(shop.effects)) >= len(recorded)

        await eventually(all_there, within=60)
    assert sorted(shop.effects()) == sorted(recorded)
    for key in "ab":
        stored_of_key = [one.event_id for one in await stored(url, name) if one.event_id.startswith(key)]
        assert stored_of_key == [one for one in recorded if one.startswith(key)]
    await transport.aclose()
    await source.aclose()
    await store.aclose()


async def test_a_handler_that_fails_to_the_end_makes_a_dead_letter_with_its_history(
    shop: Shop, name: str, url: str
) -> None:
    transport = NatsTransport(url)
    source = NatsSource(url, subject=name, group="billing")
    consumer = Consumer(
        source, name="billing", transaction=shop.transaction, retry=FixedDelay(delay="20ms", max_attempts=3)
    )

    @consumer.on("*")
    def bill(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        raise ValueError("no such customer")

    await asyncio.to_thread(shop.record, Event(name, {"a": 1}, event_id="e1", headers={"tenant": "ü"}))
    store = SqliteStore(str(shop.path))
    await Relay(store=store, transports={"nats": transport}).run_until_empty()
    async with running(consumer):
        await eventually(lambda: stored(url, f"{name}_billing_dlq"), within=60)
    [dead] = await stored(url, f"{name}_billing_dlq")
    assert (dead.event_id, dead.body, dead.headers["tenant"]) == ("e1", b'{"a":1}', "ü")
    assert (dead.headers["pillarbox-attempts"], dead.headers["pillarbox-subject"]) == ("3", name)
    assert "no such customer" in dead.headers["pillarbox-reason"]
    for closing_one in (transport, source, store):
        await closing_one.aclose()


async def several_ack_waits(url: str, name: str, *, seconds: float) -> None:
    """Return once the server has delivered a message again and again to another consumer, which never acks."""
    async with jetstream(url) as server:
        config = ConsumerConfig(ack_wait=seconds)
        other = await server.pull_subscribe(name, durable="other", config=config)
        deliveries = 0
        while deliveries < 4:
            [message] = await other.fetch(1, timeout=60)
            deliveries = message.metadata.num_delivered or 0
        await server.delete_consumer(name, "other")


async def test_a_slow_handler_keeps_its_message(name: str, url: str, sources: list[NatsSource]) -> None:
    await put(url, name, "slow", "next")
    sources += [NatsSource(url, subject=name, prefetch=1, ack_wait="300ms") for _ in range(2)]
    slow = await take(sources[0])
    assert (await take(sources[1])).incoming.event_id == "next"
    waiting = asyncio.create_task(sources[1].receive())
    await several_ack_waits(url, name, seconds=0.3)
    assert not waiting.done()
    waiting.cancel()
    await slow.ack()
    async with jetstream(url) as server:
        info = await server.consumer_info(name, "pillarbox")
    assert info.num_redelivered == 0


async def test_a_consumer_that_vanishes_without_a_word_loses_its_message_after_the_ack_wait(
    name: str, url: str, proxy: Proxy, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources += [
        NatsSource(f"nats://127.0.0.1:{proxy.port}", subject=name, ack_wait="500ms"),
        NatsSource(url, subject=name, ack_wait="500ms"),
    ]
    held = await take(sources[0])
    await proxy.cut()
    assert (await take(sources[1])).incoming.event_id == "a"
    with pytest.raises(UnavailableError):
        await held.ack()


async def test_messages_of_a_lost_connection_are_delivered_again_after_the_next_one(
    name: str, url: str, proxy: Proxy, sources: list[NatsSource]
) -> None:
    """Not only after the ack wait."""
    await put(url, name, "a", "b")
    sources.append(NatsSource(f"nats://127.0.0.1:{proxy.port}", subject=name, ack_wait="1h"))
    assert [(await take(sources[0])).incoming.event_id for _ in range(2)] == ["a", "b"]
    await proxy.reset()
    assert sorted(str(one) for one in await taken_ids(sources[0], 2)) == ["a", "b"]


async def test_every_group_receives_every_message(name: str, url: str, sources: list[NatsSource]) -> None:
    await put(url, name, "a")
    sources += [NatsSource(url, subject=name, group=group) for group in ("billing", "audit")]
    for source in sources:
        delivery = await take(source)
        assert delivery.incoming.event_id == "a"
        await delivery.retry(delay=0, reason="once more")
    # A retry belongs to its group.
    for source in sources:
        delivery = await take(source)
        assert (delivery.incoming.event_id, delivery.incoming.attempts) == ("a", 1)
        await delivery.ack()


async def test_a_long_delay_does_not_hold_up_a_short_one(name: str, url: str, sources: list[NatsSource]) -> None:
    await put(url, name, "long", "short")
    sources.append(NatsSource(url, subject=name))
    await (await take(sources[0])).retry(delay=3600, reason="later")
    await (await take(sources[0])).retry(delay=0.05, reason="soon")
    again = await take(sources[0])
    assert (again.incoming.event_id, again.incoming.attempts) == ("short", 1)
    await again.ack()


async def test_any_number_of_retries_may_wait(name: str, url: str, sources: list[NatsSource]) -> None:
    """Each is a message that is not acknowledged."""
    sources.append(NatsSource(url, subject=name))
    await sources[0].connect()
    async with jetstream(url) as server:
        config = (await server.consumer_info(f"{name}_pillarbox_retry", "wait")).config
    assert config.max_ack_pending == -1


async def test_a_consumer_that_is_deleted_is_created_again(name: str, url: str, sources: list[NatsSource]) -> None:
    await put(url, name, "a")
    sources.append(NatsSource(url, subject=name))
    await (await take(sources[0])).ack()
    async with jetstream(url) as server:
        await server.delete_consumer(name, "pillarbox")
    async with asyncio.timeout(60):
        assert (await take_through_outages(sources[0])).incoming.event_id == "a"


async def test_a_crash_is_counted_once_although_no_other_consumer_was_running(
    name: str, url: str, proxy: Proxy, sources: list[NatsSource]
) -> None:
    await put(url, name, "a", "b", "c")
    sources.append(NatsSource(f"nats://127.0.0.1:{proxy.port}", subject=name, ack_wait="500ms"))
    for _ in range(2):
        await take(sources[0])
    await proxy.cut()
    await several_ack_waits(url, name, seconds=0.5)
    sources.append(NatsSource(url, subject=name, ack_wait="500ms"))
    again = [await take(sources[1]) for _ in range(3)]
    assert sorted((str(one.incoming.event_id), one.quarantined) for one in again) == [
        ("a", False),
        ("b", False),
        ("c", False),
    ]
    for one in again:
        await one.ack()


async def test_a_cancellation_at_the_moment_of_the_connection_is_not_lost(
    name: str, url: str, sources: list[NatsSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`asyncio.wait_for` of Python 3.11 does not raise it then."""
    await put(url, name)
    sources.append(NatsSource(url, subject=name))
    open_connection = asyncio.open_connection
    receiving = asyncio.create_task(sources[0].receive())

    async def connect(*arguments: Any, **settings: Any) -> Any:
        connected = await open_connection(*arguments, **settings)
        receiving.cancel()
        return connected

    monkeypatch.setattr(asyncio, "open_connection", connect)
    done, _ = await asyncio.wait({receiving}, timeout=30)
    receiving.cancel()
    assert [one.cancelled() for one in done] == [True]


async def create_consumer(url: str, name: str, **limits: int) -> None:
    """The durable consumer of the group, as an operator creates it."""
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
        config = {"durable_name": "pillarbox", "ack_policy": "explicit", **limits}
        request = json.dumps({"stream_name": name, "config": config}).encode()
        created = await server._nc.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.pillarbox", request, timeout=30)
        assert "error" not in json.loads(created.data)


async def test_a_consumer_whose_requests_are_refused_asks_again_after_a_pause(
    name: str, url: str, sources: list[NatsSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_consumer(url, name, max_waiting=1)
    sources += [NatsSource(url, subject=name) for _ in range(2)]
    asked: list[Msg] = []
    pauses: list[float] = []
    next_pause = Backoff.next

    def counted(self: Backoff) -> float:
        pauses.append(next_pause(self))
        return pauses[-1]

    async def on_request(request: Msg) -> None:
        asked.append(request)

    monkeypatch.setattr(Backoff, "next", counted)

    async with jetstream(url) as server:
        await server._nc.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{name}.pillarbox", cb=on_request)
        await server._nc.flush()
        receiving = [asyncio.create_task(source.receive()) for source in sources]
        await eventually(lambda: len(asked) >= 6)
        assert len(pauses) >= len(asked) - 2  # before every request but the first of each source
        for number in range(1000):
            await server.publish(name, b"{}", headers={"eventId": str(number)})
            if all(one.done() for one in receiving):
                break
            await asyncio.wait(receiving, timeout=0.1)
        async with asyncio.timeout(60):
            await asyncio.gather(*receiving)


async def test_a_durable_consumer_that_accepts_no_request_is_an_error_that_says_why(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    await create_consumer(url, name, max_batch=2)
    sources.append(NatsSource(url, subject=name, prefetch=5))
    async with asyncio.timeout(60):
        with pytest.raises(UnavailableError, match=r"MaxRequestBatch of 2.*prefetch"):
            await sources[0].receive()
