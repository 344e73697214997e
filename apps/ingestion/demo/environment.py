"""Prepares the servers of the demo and cleans up afterwards.

Invariant: the demo consumes only its own messages. It rejects a broker on which the queues already exist.
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


class SetupError(Exception):
    """The demo cannot use this server; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The servers and the folder of one demo."""

    folder: Path
    store: str
    transport: str

    @property
    def title(self) -> str:
        """The path of a document, without passwords."""
        store = "SQLite" if self.store.startswith("sqlite") else f"PostgreSQL at {_host(self.store)}"
        way = f"RabbitMQ at {_host(self.transport)}" if self.transport else "handlers"
        return f"{store} → relay → {way} → validation, enrichment"


@contextmanager
def prepared(store: str, transport: str) -> Iterator[Environment]:
    """Create a temporary database, and check that the broker has no queues of the service. Raises SetupError."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ingestion-demo-")))
        own = stack.enter_context(_database(store)) if store else f"sqlite:///{folder}/ingestion.db"
        if transport:
            stack.enter_context(_queues(transport))
        yield Environment(folder=folder, store=own, transport=transport)


@contextmanager
def _database(url: str) -> Iterator[str]:
    if urlsplit(url).scheme not in ("postgresql", "postgres"):
        raise SetupError("DEMO_STORE must be postgresql://user@host/database, or empty for SQLite")
    name = f"ingestion_demo_{uuid4().hex[:8]}"
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise SetupError(
            f"DEMO_STORE: {str(error).splitlines()[0]}; the demo creates a temporary database there"
        ) from None
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _queues(url: str) -> Iterator[None]:
    if urlsplit(url).scheme not in ("amqp", "amqps"):
        raise SetupError("DEMO_TRANSPORT must be amqp://user@host/vhost, or empty for handlers")
    try:
        with _connection(url) as connection:
            taken = [queue.name for queue in QUEUES if _exists(connection, queue.name)]
    except AMQPError as error:
        raise SetupError(f"DEMO_TRANSPORT: no connection ({type(error).__name__}): is the broker running?") from None
    if taken:
        raise SetupError(f"DEMO_TRANSPORT has {', '.join(taken)} already; use another virtual host")
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
        around = (f"{queue.name}.quarantine", *(f"{queue.name}.wait.{wait}" for wait in WAITS))
        dead = queue.dead_letter
        for name in (queue.name, *around, *([dead.queue] if dead else [])):
            channel.queue_delete(name)
        if dead:
            channel.exchange_delete(dead.exchange)
    channel.exchange_delete(EVENTS.name)


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}"
