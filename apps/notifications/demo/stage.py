"""Where the demo plays: in a temporary folder, or on your servers, which are left as they were found.

On PostgreSQL it makes a database of its own and drops it. On RabbitMQ the application's queues must not exist yet:
whose they are has notifications in them.
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
from apps.notifications.topology import DEAD_LETTERS, EXCHANGE
from apps.notifications.words import Audience
from pillarbox import ConfigurationError

AROUND = ("", ".dlq", ".suspects", *(f".wait.{wait}" for wait in ("1s", "5s", "30s", "3min", "15min", "1h")))
"""What a queue and its consumer declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The servers of one demo."""

    folder: Path
    database: str
    broker: str
    """Empty: the listeners are handlers of the relay."""

    @property
    def title(self) -> str:
        """Fit for people: no user, no password."""
        store = "SQLite" if self.database.startswith("sqlite:") else f"PostgreSQL at {_place(self.database)}"
        between = f" → RabbitMQ at {_place(self.broker)}" if self.broker else ""
        return f"{store} → relay{between} → listeners → delivery"


@contextmanager
def staged(store: str, transport: str) -> Iterator[Stage]:
    """Raises ConfigurationError for a server that is not there, or not fit for it."""
    with (
        TemporaryDirectory(prefix="notifications-demo-") as name,
        _database(store, Path(name)) as database,
        _broker(transport),
    ):
        migrate(database)
        yield Stage(folder=Path(name), database=database, broker=transport)


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
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigurationError(f"PostgreSQL at {_place(url)}: {said}; the demo makes a database of its own") from None


@contextmanager
def _broker(url: str) -> Iterator[None]:
    if not url:
        yield
        return
    if not url.startswith(("amqp://", "amqps://")):
        raise ConfigurationError("DEMO_TRANSPORT must begin with amqp://, or be empty for handlers in the process")
    with _connected(url) as connection:
        taken = [audience.queue for audience in Audience if _exists(connection, audience.queue)]
    if taken:
        raise ConfigurationError(
            f"RabbitMQ at {_place(url)} has the queue {taken[0]} already; give the demo a virtual host of its own"
        )
    try:
        yield
    finally:
        with _connected(url) as connection:
            channel = connection.channel()
            for audience in Audience:
                for suffix in AROUND:
                    channel.queue_delete(audience.queue + suffix)
            for exchange in (EXCHANGE.name, DEAD_LETTERS):
                channel.exchange_delete(exchange)


@contextmanager
def _connected(url: str) -> Iterator[BlockingConnection]:
    try:
        connection = BlockingConnection(pika.URLParameters(url))
    except (AMQPError, OSError, ValueError) as error:
        raise ConfigurationError(f"RabbitMQ at {_place(url)} does not answer: {type(error).__name__}") from None
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


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
