"""The servers of a demo: a temporary database, and queues that are removed afterwards.

Invariant: a demo consumes only its own messages. It refuses a broker on which its queues already exist.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import pika
import psycopg
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError, ChannelClosedByBroker
from sqlalchemy.exc import DBAPIError

from apps.runtime.mariadb import open_mariadb_engine
from pillarbox import ConfigurationError
from pillarbox.transports.rabbitmq import Exchange, Queue
from pillarbox.transports.rabbitmq.topology import RETRY_DELAYS, ConsumerQueues

SERVERS = {"postgresql": "PostgreSQL", "postgres": "PostgreSQL", "mariadb": "MariaDB"}


@contextmanager
def temporary_database(url: str, prefix: str) -> Iterator[str]:
    """Create a database on a server, yield its URL, and drop it. Raises ConfigurationError."""
    scheme = urlsplit(url).scheme
    if scheme not in SERVERS:
        raise ConfigurationError("DEMO_STORE must begin with postgresql:// or mariadb://, or be empty for SQLite")
    name = f"{prefix}_{secrets.token_hex(4)}"
    execute, force = (_on_mariadb, "") if scheme == "mariadb" else (_on_postgres, " WITH (FORCE)")
    execute(url, f"CREATE DATABASE {name}")
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        execute(url, f"DROP DATABASE IF EXISTS {name}{force}")


@contextmanager
def own_queues(url: str, exchange: Exchange, queues: Sequence[Queue]) -> Iterator[None]:
    """Check that the broker has none of these queues, and delete what relays and consumers have declared for them.

    Raises ConfigurationError.
    """
    if urlsplit(url).scheme not in ("amqp", "amqps"):
        raise ConfigurationError("DEMO_TRANSPORT must begin with amqp://, or be empty for handlers in the process")
    with _connection(url) as connection:
        taken = [queue.name for queue in queues if _exists(connection, queue.name)]
    if taken:
        raise ConfigurationError(
            f"DEMO_TRANSPORT: RabbitMQ at {host_of(url)} has the queue {taken[0]} already; use another virtual host"
        )
    try:
        yield
    finally:
        with _connection(url) as connection:
            channel = connection.channel()
            for queue in queues:
                for declared in ConsumerQueues.around(queue, RETRY_DELAYS).declarations([exchange]):
                    match declared:
                        case Queue():
                            channel.queue_delete(declared.name)
                        case Exchange():
                            channel.exchange_delete(declared.name)
                        case _:
                            pass  # a binding is deleted with its queue


def host_of(url: str) -> str:
    """Host and port, without user and password."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}"


def server_of(url: str) -> str:
    """The name of a database for a title: with host and port, without user and password."""
    server = SERVERS.get(urlsplit(url).scheme)
    return "SQLite" if server is None else f"{server} at {host_of(url)}"


def _on_postgres(url: str, statement: str) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement.encode())
    except psycopg.Error as error:
        raise _refused(url, error) from None


def _on_mariadb(url: str, statement: str) -> None:
    engine = open_mariadb_engine(url)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
    except DBAPIError as error:
        raise _refused(url, error.orig or error) from None
    finally:
        engine.dispose()


def _refused(url: str, error: BaseException) -> ConfigurationError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ConfigurationError(f"DEMO_STORE: {server_of(url)}: {reason}; the demo creates a temporary database there")


@contextmanager
def _connection(url: str) -> Iterator[BlockingConnection]:
    try:
        connection = BlockingConnection(pika.URLParameters(url))
    except (AMQPError, OSError, ValueError) as error:
        raise ConfigurationError(
            f"DEMO_TRANSPORT: RabbitMQ at {host_of(url)} does not respond: {type(error).__name__}"
        ) from None
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
