"""`migrate`, on PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic import command
from sqlalchemy import inspect

from apps.ingestion.database import open_engine
from apps.ingestion.migrate import alembic_config
from tests.apps.ingestion.running import ingestion
from tests.servers.ports import free_port


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ingestion.db"
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


def test_concurrent_and_repeated_migrations_create_the_tables_of_the_code(empty: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: ingestion("migrate", cwd=tmp_path, INGESTION_STORE=empty), range(2)))
    done.append(ingestion("migrate", cwd=tmp_path, INGESTION_STORE=empty))
    assert [(one.returncode, one.stdout) for one in done] == [(0, "the database is up to date\n")] * 3, done
    engine = open_engine(empty)
    with engine.begin() as connection:
        assert {"documents", "idempotency_keys", "outbox_message", "outbox_inbox"} <= set(
            inspect(connection).get_table_names()
        )
        views = inspect(connection).get_view_names()
        assert ("outbox_events" in views) == (connection.dialect.name != "mariadb")
        # Compares with the tables of the code; ignores those of the outbox.
        command.check(alembic_config(connection))
    engine.dispose()


def test_the_service_does_not_start_without_its_tables(empty: str, tmp_path: Path) -> None:
    done = ingestion("serve", cwd=tmp_path, INGESTION_STORE=empty)
    assert done.returncode == 1
    assert "run `python -m apps.ingestion migrate`" in done.stderr


def test_a_consumer_does_not_start_without_the_tables_of_the_outbox(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("DROP TABLE outbox_schema")
    broker = {"INGESTION_TRANSPORT": "amqp://guest@127.0.0.1:1/"}
    done = ingestion("validate", cwd=tmp_path, INGESTION_STORE=database, **broker)
    assert done.returncode == 1
    assert "the outbox's tables" in done.stderr
    assert "run `python -m apps.ingestion migrate`" in done.stderr


def test_an_unavailable_database_is_an_error_of_one_line_without_the_password(tmp_path: Path) -> None:
    url = f"postgresql://app:s3cret-word@127.0.0.1:{free_port()}/ingestion_db"
    done = ingestion("migrate", "--wait", "1", cwd=tmp_path, INGESTION_STORE=url)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: INGESTION_STORE: connection failed")
    assert len(done.stderr.splitlines()) == 1
    assert "s3cret-word" not in done.stderr + done.stdout
