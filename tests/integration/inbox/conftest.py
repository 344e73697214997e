"""The databases of the record tests, and the committed inbox records."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from tests.integration.record.conftest import database, sqlite_path
from tests.integration.record.mariadb_ways import pymysql_connection

__all__ = ["database", "sqlite_path"]

ReadInboxRecords = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def committed(database: str) -> ReadInboxRecords:
    """The committed inbox records, read by another connection."""
    return lambda: committed_records(database)


def committed_records(database: str) -> list[tuple[str, str]]:
    query = "SELECT consumer, event_id FROM outbox_inbox ORDER BY consumer, event_id"
    if database.startswith("mariadb://"):
        with pymysql_connection(database) as mariadb, mariadb.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())
    if database.startswith("postgresql://"):
        with psycopg.connect(database) as postgres:
            return list(postgres.execute(query))
    with closing(sqlite3.connect(database)) as sqlite:
        return list(sqlite.execute(query))
