"""Where the demo plays: nothing that was there before is touched, and nothing is left behind.

What must stay true: no message of somebody else is consumed. A broker that has the queues already is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from uuid import uuid4

import pika
import psycopg
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, ChannelClosedByBroker
from psycopg import sql

from apps.ingestion.topology import EVENTS, QUEUES

WAITS = ("1s", "5s", "30s", "3min", "15min", "1h")


class NoPlace(Exception):
    """The demo cannot play there; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the service finds what it needs."""

    folder: Path
    store: str
    transport: str

    @property
    def title(self) -> str:
        """Without any password."""
        store = "SQLite" if self.store.startswith("sqlite") else f"PostgreSQL at {_host(self.store)}"
        way = f"RabbitMQ at {_host(self.transport)}" if self.transport else "handlers"
        return f"{store} → relay → {way} → validation, enrichment"


@contextmanager
def prepared(store: str, transport: str) -> Iterator[Place]:
    """A database of the demo's own, a broker without our queues. Raises NoPlace."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ingestion-demo-")))
        own = stack.enter_context(_database(store)) if store else f"sqlite:///{folder}/ingestion.db"
        if transport:
            stack.enter_context(_queues(transport))
        yield Place(folder=folder, store=own, transport=transport)


@contextmanager
def _database(url: str) -> Iterator[str]:
    if urlsplit(url).scheme not in ("postgresql", "postgres"):
        raise NoPlace("DEMO_STORE must be postgresql://user@host/database, or empty for SQLite")
    name = f"ingestion_demo_{uuid4().hex[:8]}"
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise NoPlace(f"DEMO_STORE: {str(error).splitlines()[0]}; the demo makes a database of its own there") from None
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _queues(url: str) -> Iterator[None]:
    if urlsplit(url).scheme not in ("amqp", "amqps"):
        raise NoPlace("DEMO_TRANSPORT must be amqp://user@host/vhost, or empty for handlers")
    try:
        with _connection(url) as connection:
            taken = [queue.name for queue in QUEUES if _exists(connection, queue.name)]
    except AMQPError as error:
        raise NoPlace(f"DEMO_TRANSPORT: no connection ({type(error).__name__}): is the broker up?") from None
    if taken:
        raise NoPlace(f"DEMO_TRANSPORT has {', '.join(taken)} already; name a virtual host of the demo's own")
    try:
        yield
    finally:
        with _connection(url) as connection:
            _remove(connection.channel())


def _connection(url: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(url))


def _exists(connection: pika.BlockingConnection, queue: str) -> bool:
    try:
        connection.channel().queue_declare(queue, passive=True)
    except ChannelClosedByBroker:
        return False
    return True


def _remove(channel: BlockingChannel) -> None:
    for queue in QUEUES:
        around = (f"{queue.name}.suspects", *(f"{queue.name}.wait.{wait}" for wait in WAITS))
        dead = queue.dead_letter
        for name in (queue.name, *around, *([dead.queue] if dead else [])):
            channel.queue_delete(name)
        if dead:
            channel.exchange_delete(dead.exchange)
    channel.exchange_delete(EVENTS.name)


def _host(url: str) -> str:
    place = urlsplit(url)
    return f"{place.hostname or 'localhost'}{f':{place.port}' if place.port else ''}"
