"""From the outbox over Kafka into the inbox: an outage delays events, and every effect happens once."""

import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager
from functools import partial
from pathlib import Path

from pillarbox import Consumer, Destination, Event, Outbox, Relay, Route
from pillarbox.inbox import ConsumedEvent
from pillarbox.observations import BreakerChanged, Observation
from pillarbox.retry_policies import FixedDelay
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka import KafkaTransport
from tests.integration.kafka.conftest import MakeSource, MakeTransport
from tests.integration.kafka.topics import ids, new_topic, read_all
from tests.servers.kafka import PRODUCE, KafkaServer

TOO_LARGE = 10
ONE_IN_FLIGHT = {"batch.num.messages": 20, "max.in.flight.requests.per.connection": 1, "linger.ms": 500}
"""Full requests, one at a time: the mock would store what a broker refuses after a refused request."""


async def test_events_reach_the_inbox_once_and_in_order_through_an_outage(
    mock: KafkaServer, make: MakeTransport, listen: MakeSource, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    store = SqliteStore(path)
    await store.schema.apply()

    @contextmanager
    def transaction() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(path, isolation_level="IMMEDIATE", timeout=30)) as connection, connection:
            yield connection

    def effects() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return [str(one) for (one,) in connection.execute("SELECT event_id FROM effect ORDER BY rowid")]

    with transaction() as connection:
        connection.execute("CREATE TABLE effect (event_id TEXT)")
    names = [f"e{n}" for n in range(60)]
    opened: list[BreakerChanged] = []

    def note(observation: Observation) -> None:
        if isinstance(observation, BreakerChanged) and observation.state == "open":
            opened.append(observation)

    source = listen(topic, "billing", prefetch=1, connect_timeout="1s")
    consumer = Consumer(source, name="billing", transaction=transaction)

    @consumer.on("*")
    def handle(connection: sqlite3.Connection, event: ConsumedEvent) -> None:
        connection.execute("INSERT INTO effect VALUES (?)", (event.event_id,))

    async with aclosing(store):
        relay = Relay(
            store=store,
            transports={"kafka": make(send_timeout="1s", connect_timeout="1s")},
            destinations={"orders": Destination(KafkaTransport.to(topic=topic), ordering="pipelined")},
            routes=[Route(to=["orders"])],
            retry=FixedDelay(delay="50ms"),
            observers=[note],
        )
        async with relay, consumer:
            with transaction() as connection:
                Outbox().record(connection, *(Event("o.p", {}, event_id=one, key="hot") for one in names[:30]))

            await eventually(lambda: len(effects()) >= 30)
            mock.down()
            with transaction() as connection:
                Outbox().record(connection, *(Event("o.p", {}, event_id=one, key="hot") for one in names[30:]))
            await eventually(lambda: any(one.destination == "orders" for one in opened))
            mock.up()

            await eventually(lambda: len(effects()) >= 60)
    assert effects() == names


async def test_a_refused_event_of_a_busy_key_is_dead_lettered_and_the_others_arrive_in_order(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    store, names = MemoryStore(), [f"e{n}" for n in range(120)]
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("o.p", b"", event_id=one, key="hot") for one in names))
    mock.fail_requests(PRODUCE, 0, TOO_LARGE, *[0] * 7, TOO_LARGE)
    relay = Relay(
        store=store,
        transports={"kafka": make(client=ONE_IN_FLIGHT)},
        destinations={"hot": Destination(KafkaTransport.to(topic=topic), ordering="pipelined")},
        routes=[Route(to=["hot"])],
    )
    await relay.run_until_empty()
    [dead] = [one.stored.message.event_id for one in store._tables.dead.values()]
    assert ids(read_all(mock.bootstrap, topic)) == [name for name in names if name != dead]
    assert dead not in (names[0], names[-1])


async def test_a_missing_topic_defers_its_own_events_and_dead_letters_none(
    server: KafkaServer, make: MakeTransport, topic: str
) -> None:
    """One destination with a topic per event type: the topic of one type does not exist."""
    missing = new_topic()
    store, names = MemoryStore(), [f"e{n}" for n in range(10)]
    outbox = Outbox()

    def has_arrived(name: str) -> bool:
        return name in ids(read_all(server.bootstrap, topic))

    relay = Relay(
        store=store,
        transports={"kafka": make(declare=False)},
        destinations={"each": Destination(KafkaTransport.to(topic="{event_type}"))},
        routes=[Route(to=["each"])],
        retry=FixedDelay(delay="10ms", max_attempts=2),
    )
    async with relay:
        with store.transaction() as transaction:
            outbox.record(transaction, Event(missing, {}, event_id="late", key="late"))
        for name in names:
            with store.transaction() as transaction:
                outbox.record(transaction, Event(topic, {}, event_id=name, key=name))
            await eventually(partial(has_arrived, name))
        assert store._tables.dead == {}
        server.create_topic(missing)
        await eventually(lambda: ids(read_all(server.bootstrap, missing)) == ["late"], within=120)
