"""The private servers that a soak can use."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from pillarbox.transports.kafka.drill import KafkaDrillQueue
from tests.servers.kafka import KafkaServer
from tests.servers.mariadb import MariaDBServer
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.soak.outages import OutageServer, Way

POSTGRES_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
MARIADB_SESSIONS = "SELECT count(*) FROM information_schema.processlist"
RABBITMQ_CONNECTIONS = "length(rabbit_networking:connections())"
RABBITMQ_VERSION = "element(2, application:get_key(rabbit, vsn))"

ReadNumber = Callable[[], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A store or a broker that runs, and how a soak may cut it off."""

    url: str
    """Empty: handlers in the relay's process."""
    version: str = ""
    server: OutageServer | None = None
    ways: tuple[Way, ...] = ()
    connections: Mapping[str, ReadNumber] = field(default_factory=dict[str, ReadNumber])
    """What must stay flat."""


def start_postgresql(running: ExitStack, folder: Path) -> Engine:
    server = running.enter_context(PostgresServer())

    def sessions() -> float | None:
        try:
            with psycopg.connect(server.url(), connect_timeout=2) as connection:
                return sum(float(count) for (count,) in connection.execute(POSTGRES_SESSIONS))
        except psycopg.Error:
            return None

    return Engine(
        url=server.url(), server=server, ways=("kill", "stop"), connections={"sessions of PostgreSQL": sessions}
    )


def start_mariadb(running: ExitStack, folder: Path) -> Engine:
    server = running.enter_context(MariaDBServer())
    server.create_database("shop")

    def sessions() -> float | None:
        try:
            return float(str(server.execute(MARIADB_SESSIONS)[0][0]))
        except Exception:  # it is cut off
            return None

    return Engine(
        url=server.url("shop"), server=server, ways=("kill", "stop"), connections={"sessions of MariaDB": sessions}
    )


def start_sqlite(running: ExitStack, folder: Path) -> Engine:
    return Engine(url=f"sqlite:///{folder}/shop.db")


def start_rabbitmq(running: ExitStack, folder: Path) -> Engine:
    server = running.enter_context(RabbitMQServer())

    def connections() -> float | None:
        try:
            return float(server.evaluate(RABBITMQ_CONNECTIONS))
        except Exception:  # it is cut off
            return None

    return Engine(
        url=server.url(),
        version=server.evaluate(RABBITMQ_VERSION).strip().strip('"'),
        server=server,
        ways=("kill", "stop", "freeze"),
        connections={"connections of RabbitMQ": connections},
    )


def start_nats(running: ExitStack, folder: Path) -> Engine:
    server = running.enter_context(NatsServer())
    return Engine(
        url=server.url(), version=_version("nats-server", "--version"), server=server, ways=("kill", "stop", "freeze")
    )


def start_redis(running: ExitStack, folder: Path) -> Engine:
    """Redis writes its log at every message: a kill loses nothing."""
    server = running.enter_context(RedisServer(settings={"appendonly": "yes", "appendfsync": "always"}))
    return Engine(
        url=server.url(), version=_version("redis-server", "--version"), server=server, ways=("stop", "freeze")
    )


def start_kafka(running: ExitStack, folder: Path) -> Engine:
    """The mock cluster keeps messages in memory, and can neither create nor delete topics on request."""
    server = running.enter_context(KafkaServer())
    create_mock_topics(server)
    return Engine(url=server.url(), version="mock cluster")


def create_mock_topics(server: KafkaServer) -> None:
    """Let drills of this process create topics at the mock cluster."""

    async def create(queue: KafkaDrillQueue) -> None:
        for name in queue.names:
            server.create_topic(name.removeprefix("topic "))

    async def drop(queue: KafkaDrillQueue) -> None:
        """Topics end with the cluster."""

    setattr(KafkaDrillQueue, "create", create)  # noqa: B010 - a method of another class
    setattr(KafkaDrillQueue, "drop", drop)  # noqa: B010


def no_broker(running: ExitStack, folder: Path) -> Engine:
    return Engine(url="")


StartEngine = Callable[[ExitStack, Path], Engine]
STORES: dict[str, StartEngine] = {
    "postgresql": start_postgresql,
    "mariadb": start_mariadb,
    "sqlite": start_sqlite,
}
BROKERS: dict[str, StartEngine] = {
    "rabbitmq": start_rabbitmq,
    "nats": start_nats,
    "redis": start_redis,
    "kafka": start_kafka,
    "handlers": no_broker,
}


def _version(*command: str) -> str:
    """The first word of the output that begins with a number."""
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    words = (word.lstrip("v=") for word in text.split())
    return next(word for word in words if word[:1].isdigit())
