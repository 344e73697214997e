"""Databases with the tables of the service, and a virtual host of the broker for each test."""

import asyncio
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from apps.ingestion.running import bring_up_to_date
from apps.ingestion.settings import Settings
from tests.apps.ingestion.running import Service, migrate
from tests.databases import cloned
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

AT_ONCE = 20


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a migrated database, to be cloned."""
    postgres_server.create_database("ingestion_template")
    migrate(postgres_server.url("ingestion_template"), tmp_path_factory.mktemp("migrate"))
    return "ingestion_template"


@pytest.fixture
def database(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """A migrated PostgreSQL database for one test."""
    with cloned(postgres_server, migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to be copied."""
    file = tmp_path_factory.mktemp("migrate") / "ingestion.db"
    migrate(f"sqlite:///{file}", file.parent)
    return file


@pytest.fixture
def mariadb_database(empty_mariadb_url: str) -> str:
    """A migrated MariaDB database for one test."""
    settings = Settings(store=empty_mariadb_url)
    asyncio.run(bring_up_to_date(settings, wait=0))
    return empty_mariadb_url


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database for one test, on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(request.getfixturevalue('migrated_file'), tmp_path)}"
    url: str = request.getfixturevalue("mariadb_database" if request.param == "mariadb" else "database")
    return url


@pytest.fixture(scope="session")
def vhosts(rabbitmq_server: RabbitMQServer) -> Iterator[str]:
    """An endless iterator over names of new virtual hosts."""

    def made() -> Iterator[str]:
        for first in count(step=AT_ONCE):
            names = [f"ingestion-{number}" for number in range(first, first + AT_ONCE)]
            rabbitmq_server.add_vhosts(*names)
            yield from names

    return made()


@pytest.fixture
def broker(rabbitmq_server: RabbitMQServer, vhosts: Iterator[str]) -> str:
    """The URL of a new virtual host, because the names of the queues are fixed."""
    return rabbitmq_server.url(next(vhosts))


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service without a relay, on either engine; its events stay pending."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        store = f"sqlite:///{shutil.copy(request.getfixturevalue('migrated_file'), folder)}"
        with Service(folder=folder, INGESTION_STORE=store, INGESTION_RELAY="off") as running:
            yield running
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with (
        cloned(server, request.getfixturevalue("migrated_template")) as store,
        Service(folder=folder, INGESTION_STORE=store, INGESTION_RELAY="off") as running,
    ):
        yield running
