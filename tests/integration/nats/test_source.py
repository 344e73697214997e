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
from nats.js.api import ConsumerConfig, DiscardPolicy, RetentionPolicy

from pillarbox import ConsumedEvent, Consumer, Event, FixedDelay, Outbox, Relay
from pillarbox.core.errors import UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.core.source import Delivery
from pillarbox.schemes import open_source
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.sources.receive import take_through_outages, taken_ids
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsSource, NatsTransport
from pillarbox.transports.nats.headers import MAX_HEADERS
from pillarbox.transports.nats.session import NatsConsumerSession
from tests.integration.nats.streams import count, jetstream, stored
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


async def take(source: NatsSource) -> Delivery:
    async with asyncio.timeout(60):
        return await source.receive()


async def put(url: str, name: str, *ids: str) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name], duplicate_window=120)
        for one in ids:
            await server.publish(name, b"{}", headers={"eventId": one})


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


@pytest.fixture
async def sources() -> AsyncIterator[list[NatsSource]]:
    made: list[NatsSource] = []
    yield made
    for source in made:
        await source.aclose()


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


async def test_a_retry_that_is_repeated_after_a_lost_ack_is_stored_once(
    name: str, url: str, proxy: Proxy, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources.append(NatsSource(f"nats://127.0.0.1:{proxy.port}", subject=name, reply_timeout="300ms", ack_wait="1s"))
    held = await take(sources[0])
    proxy.silence()
    retrying = asyncio.create_task(held.retry(delay=0, reason="the answer is lost"))

    async def copied() -> bool:
        return await count(url, f"{name}_pillarbox_retry") > 0

    await eventually(copied, within=60)
    await proxy.reset()
    with pytest.raises(UnavailableError):
        await retrying
    found = [await take_through_outages(sources[0]) for _ in range(2)]
    assert sorted((str(one.incoming.event_id), one.incoming.attempts) for one in found) == [("a", 0), ("a", 1)]
    for one in found:
        await one.retry(delay=3600, reason="the copy of the original exists")
    assert await count(url, f"{name}_pillarbox_retry") == 1


async def test_a_message_of_a_stream_that_is_created_again_is_no_duplicate_of_an_earlier_one(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    for event_id in ("old", "new"):
        await put(url, name, event_id)
        sources.append(NatsSource(url, subject=name))
        delivery = await take_through_outages(sources[-1])
        assert delivery.incoming.event_id == event_id
        await delivery.retry(delay=3600, reason="later")
        await sources[-1].aclose()
        async with jetstream(url) as server:
            await server.delete_stream(name)
    assert await count(url, f"{name}_pillarbox_retry") == 2


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


async def test_a_message_of_another_producer_keeps_id_and_subject_in_retry_and_quarantine(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[f"{name}.*"])
        headers = {"Nats-Msg-Id": "theirs", "pillarbox-subject": "forged"}
        await server.publish(f"{name}.a%20é", b"{}", headers=headers)
    found: list[tuple[str | None, str, bool]] = []
    for _ in range(4):
        sources.append(NatsSource(url, subject=f"{name}.*"))
        delivery = await take_through_outages(sources[-1])
        found.append((delivery.incoming.event_id, delivery.incoming.destination, delivery.quarantined))
        if delivery.quarantined:
            await delivery.retry(delay=0, reason="not yet")
        await sources[-1].aclose()
    where = f"{name}.a%20é"
    assert found == [("theirs", where, quarantined) for quarantined in (False, False, True, False)]


async def put_large(url: str, name: str, spare: int, *, by_headers: bool = False) -> tuple[bytes, dict[str, str]]:
    """Publish a message whose body or headers fill the maximum of the server but for some bytes, to a stream that
    deletes on ack."""
    headers = {"eventId": "large", "tenant": "x" * 200}
    if by_headers:
        headers["tenant"] = "x" * (MAX_HEADERS - spare - 12 - len("eventId: large\r\n") - len("tenant: \r\n"))
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name], retention=RetentionPolicy.WORK_QUEUE)
        block = 12 + sum(len(one) + len(value) + 4 for one, value in headers.items())
        body = b"small" if by_headers else b"x" * (server._nc.max_payload - block - spare)
        await server.publish(name, body, headers=headers)
    return body, headers


@pytest.mark.parametrize("by_headers", [False, True])
@pytest.mark.parametrize("spare", [0, 100, 300, 1000, 3000])
async def test_a_message_of_the_largest_size_is_retried_and_dead_lettered_with_its_body_and_headers(
    name: str, url: str, sources: list[NatsSource], spare: int, by_headers: bool
) -> None:
    body, headers = await put_large(url, name, spare, by_headers=by_headers)
    sources.append(NatsSource(url, subject=name))
    for attempts, delay in enumerate((0.0, 0.05, 0.0, 0.05)):
        delivery = await take(sources[0])
        got = delivery.incoming
        assert (got.event_id, got.body, got.attempts) == ("large", body, attempts)
        assert got.headers["tenant"] == headers["tenant"]
        await delivery.retry(delay=delay, reason="é" * 500)
    last = await take(sources[0])
    assert last.incoming.attempts == 4
    await last.reject("unusable")
    [dead] = await stored(url, f"{name}_pillarbox_dlq")
    assert (dead.body, {one: dead.headers.get(one) for one in headers}) == (body, headers)
    assert await count(url, name) == 0


@pytest.mark.parametrize("spare", [0, 200, 1000])
async def test_a_message_of_the_largest_size_that_crashes_its_consumers_is_handled_alone_and_whole(
    name: str, url: str, sources: list[NatsSource], spare: int
) -> None:
    body, headers = await put_large(url, name, spare)
    alone: list[bool] = []
    for _ in range(4):
        sources.append(NatsSource(url, subject=name))
        delivery = await take_through_outages(sources[-1])
        got = delivery.incoming
        assert (got.body, got.headers["tenant"], got.destination) == (body, headers["tenant"], name)
        alone.append(delivery.quarantined)
        await sources[-1].aclose()
    assert alone == [False, False, True, True]


async def test_a_cancelled_receive_keeps_the_message_that_it_was_moving_to_quarantine(
    name: str, url: str, sources: list[NatsSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(url, name, "a")
    for _ in range(2):
        sources.append(NatsSource(url, subject=name))
        await take(sources[-1])
        await sources[-1].aclose()
    moving = asyncio.Event()

    async def store_at_once(*_: object) -> bool:
        moving.set()
        return await asyncio.Event().wait()

    last = NatsSource(url, subject=name)
    sources.append(last)
    with monkeypatch.context() as patched:
        patched.setattr(NatsConsumerSession, "store_at_once", store_at_once)
        receiving = asyncio.create_task(last.receive())
        await moving.wait()
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
    delivery = await take(last)
    assert (delivery.incoming.event_id, delivery.quarantined) == ("a", True)


async def test_a_message_that_quarantine_refuses_is_handled_alone_and_holds_up_no_other(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    subjects = [f"pillarbox.{name}.pillarbox.{kind}" for kind in ("wait", "ready", "quarantine")]
    async with jetstream(url) as server:
        work = RetentionPolicy.WORK_QUEUE
        await server.add_stream(name=name, subjects=[name], retention=work)
        await server.add_stream(
            name=f"{name}_pillarbox_retry",
            subjects=subjects,
            retention=work,
            max_bytes=1,  # it is full
            discard=DiscardPolicy.NEW,
        )
        for one in ("crashes", "next"):
            await server.publish(name, b"{}", headers={"eventId": one})
    found: list[tuple[bool, int]] = []
    for _ in range(4):
        sources.append(NatsSource(url, subject=name, prefetch=1))
        crashing = await take(sources[-1])
        assert crashing.incoming.event_id == "crashes"
        found.append((crashing.quarantined, crashing.crashes))
        await sources[-1].aclose()
    assert found == [(False, 0), (False, 0), (True, 0), (True, 1)]
    sources.append(NatsSource(url, subject=name))
    last = [await take(sources[-1]) for _ in range(2)]
    assert [(one.incoming.event_id, one.quarantined, one.crashes) for one in last] == [
        ("crashes", True, 2),
        ("next", False, 0),
    ]
    for delivery in last:
        await delivery.ack()

    async def empty() -> bool:
        return await count(url, name) == 0

    await eventually(empty)


async def test_a_deleted_stream_of_dead_letters_is_declared_again(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources.append(NatsSource(url, subject=name))
    delivery = await take(sources[0])
    async with jetstream(url) as server:
        await server.delete_stream(f"{name}_pillarbox_dlq")
    async with asyncio.timeout(60):
        with pytest.raises(UnavailableError, match=r"no stream .*pillarbox\..*\.dead"):
            await delivery.reject("unusable")
    again = await take_through_outages(sources[0])
    assert again.incoming.event_id == "a"
    await again.reject("unusable")
    assert [one.event_id for one in await stored(url, f"{name}_pillarbox_dlq")] == ["a"]


async def test_a_stream_that_confirms_nothing_ends_the_session(name: str, url: str, sources: list[NatsSource]) -> None:
    await put(url, name, "a")
    async with jetstream(url) as server:
        await server.add_stream(
            name=f"{name}_pillarbox_dlq", subjects=[f"pillarbox.{name}.pillarbox.dead"], no_ack=True
        )
    sources.append(NatsSource(url, subject=name, reply_timeout="300ms"))
    delivery = await take(sources[0])
    async with asyncio.timeout(60):
        with pytest.raises(UnavailableError, match="did not answer"):
            await delivery.reject("unusable")
    assert (await take_through_outages(sources[0])).incoming.event_id == "a"


async def test_without_declare_a_source_needs_a_stream_for_its_dead_letters(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources += [NatsSource(url, subject=name), NatsSource(url, subject=name, declare=False)]
    await sources[0].connect()
    async with jetstream(url) as server:
        await server.delete_stream(f"{name}_pillarbox_dlq")
        with pytest.raises(UnavailableError, match=r"no stream .*pillarbox\..*\.dead.*declare = true"):
            await sources[1].connect()
        await server.add_stream(name=f"{name}-dead", subjects=[f"pillarbox.{name}.*.dead"])
        await sources[1].connect()


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
