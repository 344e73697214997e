"""Recording without tables is an error that says how to create them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Outbox, SchemaError, TableNames
from tests.integration.record.way import Way
from tests.integration.record.ways import MARIADB, POSTGRES, SQLITE

EVENT = Event("order.placed", {"id": 1})


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_an_empty_postgres_is_an_error_with_advice(way: Way, empty_postgres_url: str) -> None:
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        async with way.transaction(empty_postgres_url) as connection:
            await way.record(Outbox(), connection, EVENT)


@pytest.mark.parametrize("way", SQLITE, ids=str)
async def test_an_empty_sqlite_is_an_error_with_advice(way: Way, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        async with way.transaction(str(tmp_path / "empty.db")) as connection:
            await way.record(Outbox(), connection, EVENT)


@pytest.mark.parametrize("way", MARIADB, ids=str)
async def test_an_empty_mariadb_is_an_error_with_advice(way: Way, empty_mariadb_url: str) -> None:
    with pytest.raises(SchemaError, match="pillarbox schema apply"):
        async with way.transaction(empty_mariadb_url) as connection:
            await way.record(Outbox(), connection, EVENT)


NOWHERE = TableNames(schema="nowhere")


@pytest.mark.parametrize("outbox", [Outbox(tables=NOWHERE), Outbox(tables=NOWHERE, wakeup="none")])
def test_a_missing_schema_is_named(postgres_url: str, outbox: Outbox) -> None:
    with psycopg.connect(postgres_url) as connection, pytest.raises(SchemaError, match="nowhere"):
        outbox.record(connection, EVENT)


def test_a_table_of_an_older_release_is_an_error_with_advice() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE outbox_message (event_id TEXT)")
        with pytest.raises(SchemaError, match="pillarbox schema apply"):
            Outbox().record(connection, EVENT)
