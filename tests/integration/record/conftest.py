"""Databases with tables, and a second connection that sees only committed rows."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.integration.record.mariadb_ways import pymysql_connection

EventIds = Callable[[], list[str]]


@pytest.fixture
def sqlite_path(sqlite_template: Path, tmp_path: Path) -> str:
    """A file with tables for one test."""
    return str(shutil.copy(sqlite_template, tmp_path / "outbox.db"))


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """The test's own database of the kind its parameter names."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def committed(database: str) -> EventIds:
    """The committed ids in their sequence."""
    return lambda: committed_ids(database)


def committed_ids(database: str) -> list[str]:
    query = "SELECT event_id FROM outbox_message ORDER BY id"
    if database.startswith("postgresql://"):
        with psycopg.connect(database) as postgres:
            return [event_id for (event_id,) in postgres.execute(query)]
    if database.startswith("mariadb://"):
        with pymysql_connection(database) as mariadb, mariadb.cursor() as cursor:
            cursor.execute(query)
            return [event_id for (event_id,) in cursor.fetchall()]
    with closing(sqlite3.connect(database)) as sqlite:
        return [event_id for (event_id,) in sqlite.execute(query)]
