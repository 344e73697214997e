"""A work queue and a database for each test, and consumers in this or in other processes."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from pillarbox import Consumer, FixedDelay
from pillarbox.inbox.observations import ConsumerObservation
from pillarbox.transports.rabbitmq import RabbitMQSource
from tests.integration.consume.broker import RETRY_DELAYS, remove_queues
from tests.integration.consume.processes import ConsumerProcess
from tests.integration.rabbitmq.conftest import proxied, proxy
from tests.servers.rabbitmq import RabbitMQServer

__all__ = ["proxied", "proxy"]


@pytest.fixture
def url(rabbitmq_server: RabbitMQServer) -> str:
    return rabbitmq_server.url()


@pytest.fixture
def queue(url: str) -> Iterator[str]:
    """The name of a work queue that does not exist yet."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    remove_queues(url, name)


@pytest.fixture
def database(postgres_url: str) -> str:
    """A database with the inbox's table and one for effects."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE effect (event_id text NOT NULL)")
    return postgres_url


class Effects:
    """The committed effects of consumers."""

    def __init__(self, database: str) -> None:
        self._database = database

    def __call__(self) -> list[str]:
        with psycopg.connect(self._database) as connection:
            return [row[0] for row in connection.execute("SELECT event_id FROM effect ORDER BY event_id")]


@pytest.fixture
def effects(database: str) -> Effects:
    return Effects(database)


class Shop:
    """A consumer in this process, its effects and observations."""

    def __init__(self, database: str, source: RabbitMQSource, **settings: Any) -> None:
        self.observations: list[ConsumerObservation] = []
        self.began: list[str] = []
        self.source = source
        self._database = database
        self.consumer = Consumer(
            source,
            name="billing",
            transaction=settings.pop("transaction", self.transaction),
            **{"retry": FixedDelay(delay="50ms", max_attempts=3), "observers": [self.observations.append], **settings},
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        connection = await asyncpg.connect(self._database)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def effect(self, transaction: Any, event: Any) -> None:
        """Record the start, and insert a row."""
        self.began.append(event.event_id)
        await transaction.execute("INSERT INTO effect VALUES ($1)", event.event_id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.consumer.run())
        try:
            yield
        finally:
            self.consumer.stop()
            async with asyncio.timeout(30):
                await task

    def kinds(self, *kinds: type[Any]) -> list[Any]:
        """Its observations of these kinds."""
        return [one for one in self.observations if isinstance(one, kinds)]


MakeShop = Callable[..., Shop]


@pytest.fixture
async def make_shop(url: str, queue: str, database: str) -> AsyncIterator[MakeShop]:
    """Creates consumers of the test's queue; closes their sources at the end of the test."""
    sources: list[RabbitMQSource] = []

    def make(
        *,
        broker: str = url,
        prefetch: int = 10,
        retry_delays: Any = RETRY_DELAYS,
        work: Any = queue,
        exchanges: Any = (),
        **settings: Any,
    ) -> Shop:
        source = RabbitMQSource(broker, queue=work, exchanges=exchanges, prefetch=prefetch, retry_delays=retry_delays)
        sources.append(source)
        return Shop(database, source, **settings)

    yield make
    for source in sources:
        await source.aclose()


@pytest.fixture
def start(url: str, queue: str, database: str, tmp_path: Path) -> Iterator[Callable[[], ConsumerProcess]]:
    """Starts processes of `pillarbox consume`; kills them at the end of the test."""
    started: list[ConsumerProcess] = []

    def start_one() -> ConsumerProcess:
        started.append(ConsumerProcess(tmp_path, BROKER=url, QUEUE=queue, DATABASE=database))
        return started[-1]

    yield start_one
    for process in started:
        with suppress(ProcessLookupError):
            process.end()
