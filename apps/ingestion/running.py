"""What the commands run, from the check of the database to the last ack."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from socket import socket

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from apps.common.consuming import ConsumerHealth
from apps.common.port import serving
from apps.ingestion.database import open_engine, open_store
from apps.ingestion.logs import log_consumer
from apps.ingestion.migrate import NotMigrated, check_migrated, migrate, wait_for_database
from apps.ingestion.settings import Settings
from apps.ingestion.topology import EVENTS
from pillarbox import Consumer, PillarboxError
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.telemetry.prometheus import ConsumerMetrics
from pillarbox.transports.rabbitmq import Queue, RabbitMQSource

MakeConsumer = Callable[[Engine, RabbitMQSource], Consumer]


class CannotRun(Exception):
    """Something outside is not as it must be; the text says what to do about it."""


async def bring_up_to_date(settings: Settings, *, wait: float) -> None:
    """Raises CannotRun."""
    async with _database(settings) as (engine, store):
        await asyncio.to_thread(wait_for_database, engine, wait)
        await migrate(engine, store)


async def check(settings: Settings) -> None:
    """Raises CannotRun unless the tables are there and up to date."""
    async with _database(settings) as (engine, store):
        await check_migrated(engine, store)


async def consume(settings: Settings, queue: Queue, make: MakeConsumer, port: socket | None) -> None:
    """Until SIGTERM or SIGINT, which let what is in hand be finished. Raises CannotRun.

    port: where to serve metrics and health.
    """
    async with _database(settings) as (engine, store):
        await check_migrated(engine, store)
        consumer = make(engine, RabbitMQSource(settings.transport, queue=queue, exchanges=[EVENTS]))
        metrics, health = ConsumerMetrics(), ConsumerHealth(store)
        for observer in (log_consumer, metrics, health):
            consumer.observe(observer)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, consumer.stop)
        async with serving(port, metrics.registry, health.look):
            await consumer.run()


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[tuple[Engine, PostgresStore | SqliteStore]]:
    engine, store = open_engine(settings.store), open_store(settings.store)
    try:
        with _explained():
            yield engine, store
    finally:
        engine.dispose()
        await store.aclose()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except NotMigrated as error:
        raise CannotRun(f"{error}; run `python -m apps.ingestion migrate`") from error
    except DBAPIError as error:
        told = str(error.orig).strip().splitlines() or [type(error).__name__]
        raise CannotRun(f"INGESTION_STORE: {told[0]}") from error
    except PillarboxError as error:
        raise CannotRun(str(error)) from error
