"""Databases with every table of the application, and a broker without its queues, for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.notifications.database import migrate
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase
from tests.apps.notifications.processes import Fleet
from tests.databases import cloned
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

TEMPLATE = "notifications_template"
VHOST = "notifications"


@pytest.fixture(scope="session")
def notifications_template(postgres_server: PostgresServer) -> str:
    """The name of a migrated database, to be cloned."""
    postgres_server.create_database(TEMPLATE)
    migrate(postgres_server.url(TEMPLATE))
    return TEMPLATE


@pytest.fixture
def postgres_database(postgres_server: PostgresServer, notifications_template: str) -> Iterator[str]:
    """The URL of a migrated PostgreSQL database of the test's own."""
    with cloned(postgres_server, notifications_template) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite database, to be copied."""
    file = tmp_path_factory.mktemp("migrate") / "notifications.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def sqlite_database(migrated_file: Path, tmp_path: Path) -> str:
    """The URL of a migrated SQLite database of the test's own."""
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"


@pytest.fixture
def mariadb_database(empty_mariadb_url: str) -> str:
    """The URL of a migrated MariaDB database of the test's own."""
    migrate(empty_mariadb_url)
    return empty_mariadb_url


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def database(request: pytest.FixtureRequest) -> str:
    """On either engine."""
    url: str = request.getfixturevalue(f"{request.param}_database")
    return url


@pytest.fixture
def app(database: str) -> Iterator[AppDatabase]:
    """A database of the application, on either engine."""
    with AppDatabase.of(database) as app:
        yield app


@pytest.fixture
def postgres_app(postgres_database: str) -> Iterator[AppDatabase]:
    with AppDatabase.of(postgres_database) as app:
        yield app


@pytest.fixture(scope="session")
def virtual_host(rabbitmq_server: RabbitMQServer) -> str:
    """A virtual host of its own: the application names its queues itself."""
    rabbitmq_server.add_vhosts(VHOST)
    return rabbitmq_server.url(VHOST)


@pytest.fixture
def rabbit(virtual_host: str) -> Iterator[str]:
    """The URL of a broker without any queue of the application."""
    broker.delete_queues(virtual_host)
    yield virtual_host
    broker.delete_queues(virtual_host)


@pytest.fixture
def fleet(tmp_path: Path, postgres_database: str, rabbit: str) -> Iterator[Fleet]:
    """Processes on PostgreSQL and RabbitMQ."""
    fleet = Fleet(tmp_path, database=postgres_database, broker=rabbit)
    yield fleet
    fleet.close()
