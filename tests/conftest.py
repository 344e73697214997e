"""Servers for every test that asks for one: started at the first request, stopped with the session."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.databases import cloned, make_mariadb_tables, make_sqlite_template, make_template, mariadb_database
from tests.servers import leaks
from tests.servers.availability import available
from tests.servers.kafka import KafkaServer
from tests.servers.mariadb import MariaDBServer
from tests.servers.nats import NatsServer
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

# The shipped suites are tests too: their asserts are to show values when they fail.
pytest.register_assert_rewrite("pillarbox.testing.conformance")
# A shell that starts this in the background has it ignore Ctrl-C, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Hypothesis fails an example that takes 200 ms, and examples that are slow to make: on a busy machine any may be.
settings.register_profile("pillarbox", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pillarbox")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the session; a test makes a database of its own in it.

    A test that stops or kills its server starts one of its own.
    """
    with available(lambda: PostgresServer(durable=False, settings={"max_prepared_transactions": "10"})) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """The name of a database with the tables of the current schema, to be cloned."""
    return asyncio.run(make_template(postgres_server))


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """A database of the test's own, tables in place."""
    with cloned(postgres_server, postgres_template) as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of the test's own without any table."""
    with cloned(postgres_server, None) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    """One MariaDB for the session; a test makes a database of its own in it."""
    with available(lambda: MariaDBServer(durable=False)) as server:
        yield server


@pytest.fixture
def mariadb_url(empty_mariadb_url: str) -> str:
    """A database of the test's own, tables in place."""
    asyncio.run(make_mariadb_tables(empty_mariadb_url))
    return empty_mariadb_url


@pytest.fixture
def empty_mariadb_url(mariadb_server: MariaDBServer) -> Iterator[str]:
    """A database of the test's own without any table."""
    with mariadb_database(mariadb_server) as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the tables of the current schema, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    asyncio.run(make_sqlite_template(path))
    return path


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMQServer]:
    """One broker for the session; a test declares queues under names of its own."""
    with available(RabbitMQServer) as server:
        yield server


@pytest.fixture
def private_rabbitmq() -> Iterator[RabbitMQServer]:
    """A broker for one test, to be restarted or killed: it is not always quite itself afterwards."""
    with available(RabbitMQServer) as server:
        yield server


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """One NATS server for the session; a test uses streams and subjects of its own."""
    with available(NatsServer) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Redis for the session; a test uses streams under names of its own."""
    with available(RedisServer) as server:
        yield server


@pytest.fixture
def private_nats() -> Iterator[NatsServer]:
    """A NATS server for one test, to be restarted or killed."""
    with available(NatsServer) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """One cluster for the session; a test uses topics of its own, and heals what it broke."""
    with KafkaServer() as server:
        yield server


@pytest.fixture
def private_redis() -> Iterator[RedisServer]:
    """A Redis for one test, to be restarted or killed."""
    with available(RedisServer) as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """Transaction pooling in front of `postgres_server`, for every database in it."""
    with available(lambda: PgBouncer(postgres_server)) as pooler:
        yield pooler


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    leaks.report(session)
