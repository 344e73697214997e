"""Servers for every test that asks for one: started at the first request, stopped with the session."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.databases import cloned, make_sqlite_template, make_template
from tests.servers import leaks
from tests.servers.availability import available
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

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
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """Transaction pooling in front of `postgres_server`, for every database in it."""
    with available(lambda: PgBouncer(postgres_server)) as pooler:
        yield pooler


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    leaks.report(session)
