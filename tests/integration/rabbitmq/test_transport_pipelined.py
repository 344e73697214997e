"""Pipelined ordering: several events of one key in one batch, with a lost connection, a nack and a return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest

from pillarbox import Destination, Event, Outbox, Relay, Route
from pillarbox.core.observations import Observation, Sending
from pillarbox.retry_policies import FixedDelay
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Exchange, Queue, RabbitMQTransport
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import channel
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer

KEY = "hot"
SLOW = 250_000.0
"""Bytes per second, of which a batch has 500,000."""


class OutcomeStatistics:
    """A store with events of one key, and the batches in which a relay sent them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.batches: list[list[str]] = []

    def record(self, *events: Event) -> None:
        with self.store.transaction() as transaction:
            Outbox().record(transaction, *events)

    @asynccontextmanager
    async def relay(
        self, transport: RabbitMQTransport, *, exchange: str = "", routing_key: str = ""
    ) -> AsyncIterator[None]:
        address = RabbitMQTransport.to(exchange=exchange, routing_key=routing_key)
        async with Relay(
            store=self.store,
            transports={"rabbit": transport},
            destinations={"hot": Destination(address, ordering="pipelined")},
            routes=[Route(to=["hot"])],
            retry=FixedDelay(delay="100ms", max_attempts="unlimited"),
            observers=[self._observe],
        ):
            yield

    async def delivered(self, count: int) -> None:
        async def all_of_them() -> bool:
            return len(self.store._tables.history) >= count

        await eventually(all_of_them)

    async def refused(self, event_id: str) -> None:
        async def noted() -> bool:
            return any(one.event_id == event_id for one in self.store._tables.attempts)

        await eventually(noted)

    def sent_after(self, event_id: str) -> list[str]:
        """The messages sent after it in its first batch."""
        batch = next(batch for batch in self.batches if event_id in batch)
        return batch[batch.index(event_id) + 1 :]

    def _observe(self, observation: Observation) -> None:
        if isinstance(observation, Sending):
            self.batches.append([message.event_id for message in observation.messages])


def events(names: Sequence[str], **options: object) -> list[Event]:
    return [Event("thing.happened", b"", event_id=name, key=KEY, **options) for name in names]  # type: ignore[arg-type]


def take(url: str, queue: str) -> list[str]:
    """The event ids in a queue, which is empty afterwards."""
    with channel(url) as source:
        found: list[str] = []
        while (got := source.basic_get(queue, auto_ack=True))[0] is not None:
            assert got[1] is not None
            found.append(str(got[1].message_id))
        return found


def depth(url: str, queue: str) -> int:
    with channel(url) as broker:
        return int(broker.queue_declare(queue, passive=True).method.message_count)


@pytest.fixture
def limited(rabbitmq_server: RabbitMQServer, queue: str) -> Iterator[str]:
    """The name of a policy that keeps the test's queue under 10,000 bytes while it exists."""
    definition = '{"max-length-bytes": 10000, "overflow": "reject-publish"}'
    rabbitmq_server.ctl("set_policy", queue, f"^{queue}$", definition, "--apply-to", "queues")
    yield queue
    if queue in rabbitmq_server.ctl("list_policies"):
        rabbitmq_server.ctl("clear_policy", queue)


async def test_the_events_of_a_key_go_in_one_batch_in_order(make: MakeTransport, url: str, queue: str) -> None:
    carried, names = OutcomeStatistics(), [f"{number:03}" for number in range(300)]
    carried.record(*events(names))
    async with carried.relay(make(queues=[Queue(name=queue)]), routing_key=queue):
        await carried.delivered(len(names))
    assert take(url, queue) == names
    assert len(carried.batches) < 10


async def test_a_connection_lost_in_the_middle_keeps_first_deliveries_in_order(
    make: MakeTransport, url: str, rabbitmq_server: RabbitMQServer, queue: str
) -> None:
    carried, names = OutcomeStatistics(), [f"{number:03}" for number in range(100)]
    carried.record(
        *(Event("thing.happened", bytes(5_000), event_id=name, key=KEY, content_type="x/y") for name in names)
    )
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)

    async def in_the_middle() -> bool:
        return 10 <= depth(url, queue) < 90

    async with Proxy(rabbitmq_server.port, rate=SLOW) as slow:
        transport = make(f"amqp://127.0.0.1:{slow.port}", queues=[Queue(name=queue, type="classic")])
        async with carried.relay(transport, routing_key=queue):
            await carried.delivered(1)
            slow.silence()  # what arrives from here on is not confirmed
            await eventually(in_the_middle)
            await slow.reset()
            await carried.delivered(len(names))
        assert slow.accepted > 1
    arrived = take(url, queue)
    assert len(arrived) > len(names), "nothing was sent twice: the connection was not lost in the middle"
    assert list(dict.fromkeys(arrived)) == names


async def test_a_nacked_event_arrives_after_its_batch_and_before_all_others(
    make: MakeTransport, url: str, rabbitmq_server: RabbitMQServer, limited: str
) -> None:
    carried, names = OutcomeStatistics(), ["1", "2", "large", "4", "5"]
    carried.record(
        *(
            Event(
                "thing.happened", bytes(20_000 if name == "large" else 10), event_id=name, key=KEY, content_type="x/y"
            )
            for name in names
        )
    )
    transport = make(queues=[Queue(name=limited, type="classic")])
    async with carried.relay(transport, routing_key=limited):
        await carried.refused("large")
        await carried.delivered(4)
        carried.record(*events(["6", "7"]))
        rabbitmq_server.ctl("clear_policy", limited)
        await carried.delivered(7)
    assert carried.sent_after("large") == ["4", "5"]
    assert take(url, limited) == ["1", "2", "4", "5", "large", "6", "7"]


async def test_a_returned_event_arrives_after_its_batch_and_before_all_others(
    make: MakeTransport, url: str, queue: str, exchange: str
) -> None:
    carried, wanted = OutcomeStatistics(), {"wanted": "yes"}
    carried.record(*events(["1", "2"], headers=wanted), *events(["stray"]), *events(["4", "5"], headers=wanted))
    transport = make(exchanges=[Exchange(name=exchange, type="headers")], queues=[Queue(name=queue)])
    with channel(url) as broker:
        broker.exchange_declare(exchange, "headers", durable=True)
        broker.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
        broker.queue_bind(queue, exchange, arguments={"x-match": "all", **wanted})
        async with carried.relay(transport, exchange=exchange, routing_key="any"):
            await carried.refused("stray")
            await carried.delivered(4)
            carried.record(*events(["6", "7"], headers=wanted))
            broker.queue_bind(queue, exchange, arguments={"x-match": "all"})
            await carried.delivered(7)
    assert carried.sent_after("stray") == ["4", "5"]
    assert take(url, queue) == ["1", "2", "4", "5", "stray", "6", "7"]


async def test_an_event_whose_queue_cannot_be_declared_is_overtaken_by_its_own_batch_only(
    make: MakeTransport, rabbitmq_server: RabbitMQServer, queue: str
) -> None:
    carried = OutcomeStatistics()
    rabbitmq_server.add_user(queue, "secret")
    rabbitmq_server.ctl("set_permissions", queue, "^(?!.*locked)", ".*", ".*")
    try:
        transport = make(f"amqp://{queue}:secret@127.0.0.1:{rabbitmq_server.port}", window=10)
        async with carried.relay(transport, routing_key="{event_type}"):
            # So that a fetch brings many of a lane.
            carried.record(*(Event(queue, {}, key=f"other {number}") for number in range(1_000)))
            await carried.delivered(1_000)
            locked = [Event(f"{queue}.locked", {}, event_id=f"locked {number}", key=KEY) for number in range(2)]
            carried.record(*locked, *(Event(queue, {}, event_id=f"{number}", key=KEY) for number in range(100)))
            await carried.refused("locked 0")
            tried = [batch for batch in carried.batches if "locked 0" in batch]

            async def retried() -> bool:
                return sum("locked 0" in batch for batch in carried.batches) > len(tried) + 1

            await eventually(retried)
    finally:
        rabbitmq_server.delete_user(queue)
    delivered = {
        row.stored.message.event_id for row in carried.store._tables.history.values() if row.stored.message.key == KEY
    }
    assert delivered == set(carried.sent_after("locked 0")) - {"locked 1"}
