"""Prepares the servers of the demo and cleans up afterwards.

On PostgreSQL it creates a temporary database. On RabbitMQ the application's queues must not exist yet: they could
contain messages of a real installation.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pika
import psycopg
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError, ChannelClosedByBroker
from psycopg import sql

from apps.notifications.database import migrate
from apps.notifications.domain import Audience
from apps.notifications.topology import DEAD_LETTERS, EXCHANGE
from pillarbox import ConfigurationError

AROUND = ("", ".dlq", ".quarantine", *(f".wait.{wait}" for wait in ("1s", "5s", "30s", "3min", "15min", "1h")))
"""The suffixes of all queues that a queue and its consumer declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The servers of one demo."""

    folder: Path
    database: str
    broker: str
    """Empty: the listeners are handlers of the relay."""

    @property
    def title(self) -> str:
        """The path of a notification, without users and passwords."""
        store = "SQLite" if self.database.startswith("sqlite:") else f"PostgreSQL at {_host(self.database)}"
        between = f" → RabbitMQ at {_host(self.broker)}" if self.broker else ""
        return f"{store} → relay{between} → listeners → delivery"


@contextmanager
def prepared(store: str, transport: str) -> Iterator[Environment]:
    """Prepare the servers and the tables. Raises ConfigurationError for a server that is unavailable or unsuitable."""
    with (
        TemporaryDirectory(prefix="notifications-demo-") as name,
        _database(store, Path(name)) as database,
        _broker(transport),
    ):
        migrate(database)
        yield Environment(folder=Path(name), database=database, broker=transport)


@contextmanager
def _database(store: str, folder: Path) -> Iterator[str]:
    if not store:
        yield f"sqlite:///{folder / 'demo.db'}"
        return
    if not store.startswith("postgresql://"):
        raise ConfigurationError(
            "DEMO_STORE must begin with postgresql://, or be empty for SQLite in a temporary folder"
        )
    name = f"notifications_demo_{secrets.token_hex(4)}"
    _execute(store, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlsplit(store)._replace(path=f"/{name}").geturl()
    finally:
        _execute(store, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _execute(url: str, statement: sql.Composed) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigurationError(
            f"PostgreSQL at {_host(url)}: {reason}; the demo creates a temporary database"
        ) from None


@contextmanager
def _broker(url: str) -> Iterator[None]:
    if not url:
        yield
        return
    if not url.startswith(("amqp://", "amqps://")):
        raise ConfigurationError("DEMO_TRANSPORT must begin with amqp://, or be empty for handlers in the process")
    with _connection(url) as connection:
        taken = [audience.queue for audience in Audience if _exists(connection, audience.queue)]
    if taken:
        raise ConfigurationError(f"RabbitMQ at {_host(url)} has the queue {taken[0]} already; use another virtual host")
    try:
        yield
    finally:
        with _connection(url) as connection:
            channel = connection.channel()
            for audience in Audience:
                for suffix in AROUND:
                    channel.queue_delete(audience.queue + suffix)
            for exchange in (EXCHANGE.name, DEAD_LETTERS):
                channel.exchange_delete(exchange)


@contextmanager
def _connection(url: str) -> Iterator[BlockingConnection]:
    try:
        connection = BlockingConnection(pika.URLParameters(url))
    except (AMQPError, OSError, ValueError) as error:
        raise ConfigurationError(f"RabbitMQ at {_host(url)} does not respond: {type(error).__name__}") from None
    try:
        yield connection
    finally:
        connection.close()


def _exists(connection: BlockingConnection, queue: str) -> bool:
    try:
        connection.channel().queue_declare(queue, passive=True)
    except ChannelClosedByBroker:
        return False
    return True


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
