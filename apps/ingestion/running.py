"""Runs the processes: waits for the database, checks the tables, and consumes until a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from socket import socket

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from apps.ingestion.database import open_engine, open_store
from apps.ingestion.logs import log_consumer
from apps.ingestion.migrate import NotMigrated, check_migrated, migrate, wait_for_database
from apps.ingestion.settings import Settings
from apps.ingestion.topology import EVENTS
from apps.runtime.consuming import ConsumerHealth
from apps.runtime.port import serving
from apps.runtime.stores import Store
from pillarbox import Consumer, PillarboxError, SchemaError, StoreUnavailableError
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.telemetry.prometheus import ConsumerMetrics
from pillarbox.transports.rabbitmq import Queue, RabbitMQSource

log = logging.getLogger(__name__)

PAUSE = 1.0
"""Seconds between two attempts to reach the database."""

MakeConsumer = Callable[[Engine, RabbitMQSource], Consumer]


class CannotRun(Exception):
    """A server or the schema is not ready; the text says what to do."""


async def bring_up_to_date(settings: Settings, *, wait: float) -> None:
    """Create or upgrade the tables. Raises CannotRun."""
    async with _database(settings) as (engine, store):
        await asyncio.to_thread(wait_for_database, engine, wait)
        await migrate(engine, store)


async def check(settings: Settings) -> None:
    """Wait for the database. Raises CannotRun unless its tables are up to date."""
    async with _database(settings) as (engine, store):
        await _wait_for_store(store)
        await check_migrated(engine, store)


async def consume(settings: Settings, queue: Queue, make: MakeConsumer, port: socket | None) -> None:
    """Consume until SIGTERM or SIGINT, then finish the messages in flight. Raises CannotRun.

    port: where to serve metrics and health.
    """
    async with _database(settings) as (engine, store):
        await _wait_for_store(store)
        await check_migrated(engine, store)
        consumer = make(engine, RabbitMQSource(settings.transport, queue=queue, exchanges=[EVENTS]))
        metrics, health = ConsumerMetrics(), ConsumerHealth(store)
        for observer in (log_consumer, metrics, health):
            consumer.observe(observer)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, consumer.stop)
        async with serving(port, metrics.registry, health.check):
            await consumer.run()


async def _wait_for_store(store: Store) -> None:
    """Wait for a server that starts later than this process; a SQLite file exists or does not."""
    while not isinstance(store, SqliteStore):
        try:
            await store.schema.check()
        except StoreUnavailableError as error:
            log.warning("Database is unavailable, retrying in %.0f s: %s", PAUSE, error)
            await asyncio.sleep(PAUSE)
        except SchemaError:
            return  # it responds; `check_migrated` says what to do
        else:
            return


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[tuple[Engine, Store]]:
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
        lines = str(error.orig).strip().splitlines() or [type(error).__name__]
        raise CannotRun(f"INGESTION_STORE: {lines[0]}") from error
    except PillarboxError as error:
        raise CannotRun(str(error)) from error
