"""Unavailable databases and lost connections; no error contains a password."""

import asyncio
import os
import signal

import pytest

from pillarbox.core.errors import ConfigurationError, PillarboxError, StoreUnavailableError
from pillarbox.core.lane import RelayRegistration
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.testing.waiting import eventually
from tests.databases import Sql
from tests.servers.ports import free_port

CANARY = "canary-password"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:{canary}@127.0.0.1:{port}/shop",
        "postgresql://app:{canary}@nowhere.invalid/shop",
        "postgresql://app:{canary}@127.0.0.1:notaport/shop",
        "mysql://app:{canary}@127.0.0.1/shop",
        "postgresql://app:12/{canary}@127.0.0.1:{port}/shop",
    ],
)
async def test_connection_errors_name_the_server_and_never_the_password(url: str) -> None:
    with pytest.raises(PillarboxError) as raised:
        await PostgresStore(url.format(canary=CANARY, port=free_port())).schema.status()
    assert CANARY not in str(raised.value) + repr(raised.value)


@pytest.mark.parametrize("host", [f"127.0.0.1:{free_port()}", "nowhere.invalid", "127.0.0.1:1,127.0.0.1:2"])
async def test_a_server_to_which_no_connection_can_be_opened_is_unreachable(host: str) -> None:
    with pytest.raises(StoreUnavailableError) as raised:
        await PostgresStore(f"postgresql://app@{host}/shop").schema.status()
    assert raised.value.unreachable


async def test_an_invalid_url_is_rejected_before_connecting() -> None:
    with pytest.raises(ConfigurationError, match="postgresql://"):
        PostgresStore("shop.db")


async def test_a_server_that_does_not_respond_is_an_error_and_the_store_reconnects(postgres_url: str) -> None:
    connection = PostgresStoreConnection(postgres_url, answer_within=0.5)
    [(pid,)] = await connection.fetch("SELECT pg_backend_pid()")
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailableError, match="TimeoutError") as raised:
            await connection.fetch("SELECT 1")
        assert not raised.value.unreachable
        [(another,)] = await connection.fetch("SELECT pg_backend_pid()")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert another != pid
    await connection.aclose()


async def test_a_terminated_connection_fails_once_and_is_replaced(store: PostgresStore, sql: Sql) -> None:
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    await sql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pillarbox'")

    async def works_again() -> bool:
        try:
            return bool(await store.lanes.acquire("a", limit=64))
        except StoreUnavailableError:
            return False

    assert await eventually(works_again)


async def test_a_cancelled_fetch_leaves_a_working_store(store: PostgresStore, other_session: Sql) -> None:
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    holding = other_session.transaction()
    await holding.start()
    await other_session.execute("LOCK TABLE outbox_lane IN ACCESS EXCLUSIVE MODE")
    taking = asyncio.create_task(store.lanes.acquire("a", limit=64))

    async def waits() -> bool:
        return bool(await other_session.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

    await eventually(waits)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await holding.rollback()
    assert await store.lanes.acquire("a", limit=64)


async def test_closing_twice_is_allowed(store: PostgresStore) -> None:
    await store.schema.check()
    await store.aclose()
    await store.aclose()
