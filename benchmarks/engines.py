"""The servers of the transports' benchmark: for each, what its own client publishes at most, and what has arrived."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import aiohttp
import nats
import redis.asyncio
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.broker import WINDOW, Queues, raw_publisher
from benchmarks.events import payload
from benchmarks.processes import Worker, workers
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

BATCH = 500
RECEIVER = "benchmarks.workers.receiver"
CONNECTIONS = 20
"""Requests at once to a receiver of webhooks, as the transport has by default."""


class Raw(NamedTuple):
    """What a client publishes without a store and a relay; every message confirmed."""

    rate: float
    cpu: float
    """µs per message of the client."""


class Timer:
    """Measures a client that is connected and has published a first message."""

    def __init__(self) -> None:
        self._began = (0.0, 0.0)
        self.measured = Raw(0.0, 0.0)

    def start(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def stop(self, messages: int) -> None:
        """That many were confirmed since the start."""
        seconds, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        self.measured = Raw(messages / seconds, cpu / messages * 1e6)


class EngineUnderTest(ABC):
    """A server with an empty topic, stream or queue called `name`, a new one for each sample."""

    kind: str
    url: str

    def __init__(self) -> None:
        self.name = ""
        self._number = 0

    def renew(self) -> None:
        """Begin a sample."""
        self._number += 1
        self.name = f"bench-{self._number}"
        self.create()

    def raw(self, messages: int) -> Raw:
        """Publish with the client alone."""
        timer = Timer()
        self.publish(messages, timer)
        assert (found := self.arrived()) == messages, f"{self.kind}: {found} of {messages} messages arrived"
        return timer.measured

    @abstractmethod
    def create(self) -> None: ...
    @abstractmethod
    def publish(self, messages: int, timer: Timer) -> None:
        """Connect and publish; time all messages but the first or the first batch."""

    @abstractmethod
    def arrived(self) -> int: ...


class RabbitMQ(EngineUnderTest):
    """Frames that were encoded beforehand, on a socket."""

    kind = "rabbitmq"

    def __init__(self, server: RabbitMQServer) -> None:
        super().__init__()
        self._port, self.url = server.port, server.url()
        self._queues = Queues(self.url, self._port)

    def create(self) -> None:
        self._queues.make(self.name, "quorum")

    def publish(self, messages: int, timer: Timer) -> None:
        windows = messages // WINDOW
        with raw_publisher(self._port, self.name) as publisher:
            publisher.publish()
            timer.start()
            for _ in range(windows - 1):
                publisher.publish()
            timer.stop((windows - 1) * WINDOW)

    def arrived(self) -> int:
        return self._queues.depth(self.name)


class Kafka(EngineUnderTest):
    """An idempotent producer with a thread that polls."""

    kind = "kafka"
    PARTITIONS = 8

    def __init__(self, server: KafkaServer) -> None:
        super().__init__()
        self._server, self.url = server, server.url()

    def create(self) -> None:
        self._server.create_topic(self.name, self.PARTITIONS)

    def publish(self, messages: int, timer: Timer) -> None:
        producer = Producer({"bootstrap.servers": self._server.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        confirmed = 0

        def report(error: object, _: object) -> None:
            nonlocal confirmed
            assert error is None, error
            confirmed += 1

        def poll() -> None:
            while confirmed < messages:
                producer.poll(0.05)

        # The first one waits half a second for a producer id.
        producer.produce(self.name, payload(1), "ORDER:1", on_delivery=report)
        producer.flush()
        timer.start()
        thread = threading.Thread(target=poll)
        thread.start()
        for number in range(2, messages + 1):
            producer.produce(self.name, payload(number), f"ORDER:{number % 20_000}", on_delivery=report)
        thread.join()
        timer.stop(messages - 1)

    def arrived(self) -> int:
        """By offsets: the mock cluster keeps only the end of a partition."""
        consumer = Consumer({"bootstrap.servers": self._server.bootstrap, "group.id": "bench"})
        try:
            places = [TopicPartition(self.name, number) for number in range(self.PARTITIONS)]
            marks: list[Any] = [consumer.get_watermark_offsets(place, timeout=30) for place in places]
            return sum(high for _, high in marks)
        finally:
            consumer.close()


class Nats(EngineUnderTest):
    """Batches with an own reply subject; the replies are counted, not parsed."""

    kind = "nats"

    def __init__(self, server: NatsServer) -> None:
        super().__init__()
        self.url = server.url()

    def create(self) -> None:
        asyncio.run(self._create())

    async def _create(self) -> None:
        client = await nats.connect(self.url)
        await client.jetstream().add_stream(name=self.name, subjects=[self.name])
        await client.close()

    def publish(self, messages: int, timer: Timer) -> None:
        asyncio.run(self._publish(messages, timer))

    async def _publish(self, messages: int, timer: Timer) -> None:
        client = await nats.connect(self.url)
        await client.jetstream().publish(self.name, payload(1))
        timer.start()
        done, left = asyncio.Event(), messages - 1

        async def count(_: object) -> None:
            nonlocal left
            left -= 1
            if left <= 0 or left % BATCH == 0:
                done.set()

        inbox = client.new_inbox()
        await client.subscribe(f"{inbox}.*", cb=count)
        for first in range(1, messages, BATCH):
            done.clear()
            for number in range(first + 1, min(first + BATCH, messages) + 1):
                headers = {"Nats-Msg-Id": f"event-{number}"}
                await client.publish(self.name, payload(number), reply=f"{inbox}.{number}", headers=headers)
            await done.wait()
        timer.stop(messages - 1)
        await client.close()

    def arrived(self) -> int:
        return asyncio.run(self._arrived())

    async def _arrived(self) -> int:
        client = await nats.connect(self.url)
        found = await client.jetstream().stream_info(self.name)
        await client.close()
        return int(found.state.messages)


class Redis(EngineUnderTest):
    """redis-py with hiredis, pipelines of 500."""

    kind = "redis"

    def __init__(self, server: RedisServer) -> None:
        super().__init__()
        self._server, self.url = server, server.url()

    def create(self) -> None:
        self._server.client().flushall()

    def publish(self, messages: int, timer: Timer) -> None:
        asyncio.run(self._publish(messages, timer))

    async def _publish(self, messages: int, timer: Timer) -> None:
        client = redis.asyncio.Redis.from_url(self.url)
        await client.xadd(self.name, {"id": "event-1", "type": "order.placed", "body": payload(1)})
        timer.start()
        for first in range(1, messages, BATCH):
            pipeline = client.pipeline(transaction=False)
            for number in range(first + 1, min(first + BATCH, messages) + 1):
                pipeline.xadd(self.name, {"id": f"event-{number}", "type": "order.placed", "body": payload(number)})
            await pipeline.execute()
        timer.stop(messages - 1)
        await client.aclose()

    def arrived(self) -> int:
        found: Any = self._server.client().xlen(self.name)
        return int(found)


class Webhook(EngineUnderTest):
    """aiohttp with as many requests at once as the transport makes."""

    kind = "webhook"

    def __init__(self, port: int, receiver: Worker) -> None:
        super().__init__()
        self._port, self._receiver = port, receiver
        self.url = f"http://127.0.0.1:{port}/hook"

    def create(self) -> None:
        asyncio.run(self._ask("reset"))

    def publish(self, messages: int, timer: Timer) -> None:
        asyncio.run(self._publish(messages, timer))

    async def _publish(self, messages: int, timer: Timer) -> None:
        numbers = iter(range(2, messages + 1))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:

            async def send(numbers: Iterator[int]) -> None:
                for number in numbers:
                    async with session.post(self.url, data=payload(number)) as response:
                        assert response.status == 204
                        await response.read()

            await send(iter([1]))
            timer.start()
            await asyncio.gather(*(send(numbers) for _ in range(CONNECTIONS)))
            timer.stop(messages - 1)

    def arrived(self) -> int:
        return asyncio.run(self._ask("count"))

    async def _ask(self, what: str) -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self._port}/{what}") as response,
        ):
            return int(await response.text())


@contextmanager
def receiving() -> Iterator[Webhook]:
    """A receiver of webhooks in a process of its own."""
    port = free_port()
    with workers(RECEIVER, [{"port": port}]) as [receiver]:
        yield Webhook(port, receiver)


@contextmanager
def engines(kinds: Collection[str] = ()) -> Iterator[list[EngineUnderTest]]:
    """Private servers of these transports, durable where they can be; none named: of every transport."""
    with ExitStack() as stack:
        make: dict[str, Callable[[], EngineUnderTest]] = {
            "rabbitmq": lambda: RabbitMQ(stack.enter_context(RabbitMQServer())),
            "kafka": lambda: Kafka(stack.enter_context(KafkaServer())),
            "nats": lambda: Nats(stack.enter_context(NatsServer())),
            "redis": lambda: Redis(stack.enter_context(RedisServer())),
            "webhook": lambda: stack.enter_context(receiving()),
        }
        yield [make[kind]() for kind in kinds or make]
