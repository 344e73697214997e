"""The connection with which demo and drill write."""

import asyncio
from contextlib import aclosing

import pytest

from pillarbox.schemes import store_plugin
from pillarbox.testing.waiting import eventually
from tests.integration.mariadb.session import Session


async def test_a_cancelled_transaction_stays_cancelled_and_is_rolled_back(
    mariadb_url: str, sql: Session, other_session: Session
) -> None:
    await other_session.execute("BEGIN")
    await other_session.execute("INSERT INTO outbox_audit (what) VALUES ('theirs')")
    [number] = (await other_session.execute("SELECT audit_id FROM outbox_audit"))[0]

    async def write() -> None:
        async with producer.transaction() as connection, connection.cursor() as cursor:
            await cursor.execute("INSERT INTO outbox_audit (what) VALUES ('ours')")
            await cursor.execute("SELECT what FROM outbox_audit WHERE audit_id = %s FOR UPDATE", (number,))

    async with aclosing(store_plugin("mariadb").producer(mariadb_url)) as producer:
        writing = asyncio.create_task(write())
        await eventually(sql.waits_for_a_lock)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await other_session.execute("COMMIT")
        async with producer.transaction() as connection, connection.cursor() as cursor:
            await cursor.execute("SELECT what FROM outbox_audit WHERE what <> 'theirs'")
            assert await cursor.fetchall() in ([], ())
