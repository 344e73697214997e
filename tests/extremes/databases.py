"""Connections of the tests' own to each database, by its URL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pymysql

from tests.integration.record.mariadb_ways import connect_arguments

LARGEST_PACKET = 512 * 1024**2


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A connection with a driver that `record` takes; the caller commits."""
    opened: Any
    if url.startswith("mariadb:"):
        opened = pymysql.connect(**connect_arguments(url), max_allowed_packet=LARGEST_PACKET)
    elif url.startswith("sqlite:"):
        opened = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60)
    else:
        opened = psycopg.connect(url)
    with closing(opened):
        yield opened


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement in a transaction of its own and return its rows, if it has any."""
    with connected(url) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        found = list(cursor.fetchall()) if cursor.description else []
        connection.commit()
        return found


def number(url: str, statement: str) -> int:
    return int(rows(url, statement)[0][0])
