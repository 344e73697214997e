"""Whatever a plain INSERT puts into the table is delivered or dead-lettered, its neighbours flow, lists show it."""

from contextlib import aclosing

import pymysql
import pytest

from pillarbox import Handlers, NoRetry, Relay
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.testing.waiting import eventually
from tests.integration.record.mariadb_ways import pymysql_connection
from tests.integration.relay.test_any_row import CONFIG, NEIGHBOURS, check, ended, rows_of


@pytest.mark.parametrize(("seed", "sql_mode"), [(1, "STRICT_TRANS_TABLES"), (2, "")])
async def test_any_row_reaches_an_outcome_without_affecting_others(mariadb_url: str, seed: int, sql_mode: str) -> None:
    handlers = Handlers()

    @handlers.on("*", name="one")
    async def one(event: object, context: object) -> None:
        dict(event.headers)  # type: ignore[attr-defined]

    @handlers.on("a*", name="two")
    async def two(event: object, context: object) -> None:
        pass

    with (
        pymysql_connection(mariadb_url, autocommit=True, sql_mode=sql_mode) as connection,
        connection.cursor() as cursor,
    ):
        # MariaDB goes on counting from the largest sequence: producers must not give any.
        for row in (row for row in rows_of(seed, "id") if "id" not in row):
            insert = f"INSERT INTO outbox_message ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})"
            try:
                cursor.execute(insert, [*row.values()])
            except pymysql.MySQLError:
                continue  # rejected by the insert
        cursor.execute("SELECT event_id FROM outbox_message")
        inserted = {event_id for (event_id,) in cursor.fetchall()}
    assert inserted.issuperset(NEIGHBOURS)
    async with aclosing(MariaDBStore(mariadb_url)) as store:
        async with Relay(store=store, transports={"handlers": handlers}, retry=NoRetry(), config=CONFIG):
            await eventually(lambda: ended(store), within=90, pause=0.1)
        await check(store, inserted)
