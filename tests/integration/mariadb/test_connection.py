"""Unavailable databases, lost connections and the wrong server; no error contains a password."""

import asyncio
import os
import signal
import socket
from pathlib import Path
from urllib.parse import quote

import pytest

from pillarbox.core.errors import ConfigurationError, PillarboxError, SchemaError, StoreUnavailableError
from pillarbox.core.lane import RelayRegistration
from pillarbox.stores.mariadb import MariaDBStore, connection
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, check_version
from pillarbox.testing.waiting import eventually
from tests.integration.mariadb.session import Session
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.ports import free_port

CANARY = "canary-password"


@pytest.mark.parametrize(
    "url",
    [
        "mariadb://app:{canary}@127.0.0.1:{port}/shop",
        "mysql://app:{canary}@nowhere.invalid/shop",
        "mariadb://app:{canary}@127.0.0.1:notaport/shop",
        "postgresql://app:{canary}@127.0.0.1/shop",
        "mariadb://app:12/{canary}@127.0.0.1:{port}/shop",
        "mariadb://app:{canary}@127.0.0.1:{port}/",
        "mariadb://app:{canary}@127.0.0.1:{port}/shop?ssl_mode=perhaps",
        "mariadb://app:{canary}@127.0.0.1:{port}/shop?sslmode=require",
    ],
)
async def test_connection_errors_name_the_server_and_never_the_password(url: str) -> None:
    with pytest.raises(PillarboxError) as raised:
        await MariaDBStore(url.format(canary=CANARY, port=free_port())).schema.status()
    assert CANARY not in str(raised.value) + repr(raised.value) + repr(raised.value.__cause__)


async def test_a_wrong_password_is_an_error_without_it(mariadb_server: MariaDBServer) -> None:
    store = MariaDBStore(f"mariadb://stranger:{CANARY}@127.0.0.1:{mariadb_server.port}/mysql")
    with pytest.raises(StoreUnavailableError, match="Access denied") as raised:
        await store.schema.status()
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("password", ["geheim", "schlüssel", "пароль"])
async def test_a_password_may_have_any_characters(mariadb_server: MariaDBServer, password: str) -> None:
    mariadb_server.execute(f"CREATE OR REPLACE USER anyone@'%' IDENTIFIED BY '{password}'")
    mariadb_server.execute("GRANT ALL ON mysql.* TO anyone@'%'")
    store = MariaDBStore(f"mariadb://anyone:{quote(password)}@127.0.0.1:{mariadb_server.port}/mysql")
    try:
        assert not (await store.schema.status()).ok
    finally:
        await store.aclose()
        mariadb_server.execute("DROP USER anyone@'%'")


async def test_a_server_that_accepts_and_says_nothing_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a proxy, whose server is gone."""
    monkeypatch.setattr(connection, "CONNECT_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = MariaDBStore(f"mariadb://app:{CANARY}@127.0.0.1:{silent.getsockname()[1]}/shop")
        with pytest.raises(StoreUnavailableError, match="TimeoutError"):
            async with asyncio.timeout(60):
                await store.schema.status()


async def test_an_invalid_url_is_rejected_before_connecting() -> None:
    with pytest.raises(ConfigurationError, match="mariadb://"):
        MariaDBStore("shop.db")


@pytest.mark.parametrize("version", ["8.0.36", "5.5.5-10.5.23-MariaDB-log", "10.3.39-MariaDB", "8.4.3-Percona"])
def test_another_server_or_an_old_one_is_rejected(version: str) -> None:
    with pytest.raises(SchemaError, match=r"MariaDB 10\.6 or newer"):
        check_version(version, "db:3306/shop")


@pytest.mark.parametrize("version", ["5.5.5-10.6.12-MariaDB-log", "10.11.6-MariaDB-0+deb12u1", "11.4.2-MariaDB"])
def test_a_supported_server_is_accepted(version: str) -> None:
    check_version(version, "db:3306/shop")


async def test_a_killed_connection_is_replaced(store: MariaDBStore, sql: Session) -> None:
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    assert await store.lanes.renew("a", lease=60)
    ended = asyncio.create_task(store.lanes.session_ended())
    for (number,) in await sql.execute(
        "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
    ):
        await sql.execute(f"KILL {number}")

    async def renewed() -> bool:
        try:
            return await store.lanes.renew("a", lease=60) is not None
        except StoreUnavailableError:
            return False

    await eventually(renewed)
    async with asyncio.timeout(10):
        await ended


async def test_a_server_that_became_read_only_is_left(mariadb_server: MariaDBServer, mariadb_url: str) -> None:
    """The address may lead to the new primary by now."""
    mariadb_server.execute("CREATE USER relay")
    mariadb_server.execute(f"GRANT ALL ON {mariadb_url.rpartition('/')[2]}.* TO relay")
    connection = MariaDBStoreConnection(mariadb_url.replace("root@", "relay@"))
    try:
        before = await connection.fetch("SELECT connection_id()")
        mariadb_server.execute("SET GLOBAL read_only = 1")
        with pytest.raises(StoreUnavailableError, match="read-only"):
            await connection.run("INSERT INTO outbox_audit (what) VALUES ('drain')")
        assert await connection.fetch("SELECT connection_id()") != before
    finally:
        mariadb_server.execute("SET GLOBAL read_only = 0")
        await connection.aclose()
        mariadb_server.execute("DROP USER relay")


async def test_the_session_of_a_relay_that_crashed_is_seen_before_its_lease_ends(
    store: MariaDBStore, other_store: MariaDBStore, sql: Session
) -> None:
    """A relay whose process is killed leaves a session that the server ends, and with it the lock."""
    for name, one in (("a", store), ("b", other_store)):
        await one.lanes.join(RelayRegistration(id=name), lease=60)
        assert await one.lanes.renew(name, lease=60)
    assert await other_store.lanes.ended("b") == []
    [token] = [session for id, session in await sql.execute("SELECT id, session FROM outbox_relay") if id == "a"]
    await sql.execute(f"KILL {token.partition(':')[0]}")

    async def seen() -> bool:
        return [session.relay for session in await other_store.lanes.ended("b")] == ["a"]

    await eventually(seen)
    assert await other_store.lanes.expire(await other_store.lanes.ended("b")) == 1


async def test_settings_of_the_server_do_not_change_the_sessions(
    mariadb_server: MariaDBServer, mariadb_url: str
) -> None:
    defaults = {
        "sql_mode": "'NO_BACKSLASH_ESCAPES'",
        "tx_isolation": "'SERIALIZABLE'",
        "time_zone": "'+05:00'",
        "sql_select_limit": "1",
    }
    before = {name: mariadb_server.execute(f"SELECT @@global.{name}")[0][0] for name in defaults}
    for name, value in defaults.items():
        mariadb_server.execute(f"SET GLOBAL {name} = {value}")
    connection = MariaDBStoreConnection(mariadb_url)
    try:
        asked = "SELECT @@sql_mode, @@tx_isolation, @@time_zone, @@sql_select_limit"
        [(mode, isolation, zone, limit)] = await connection.fetch(asked)
        assert "STRICT_ALL_TABLES" in mode
        assert (isolation, zone) == ("READ-COMMITTED", "+00:00")
        assert limit > 1
        text = "\\ ' \""
        assert [*await connection.fetch("SELECT :text", {"text": text})] == [(text,)]
    finally:
        await connection.aclose()
        for name, old in before.items():
            mariadb_server.execute(f"SET GLOBAL {name} = {old!r}")


def is_stopped(pid: int) -> bool:
    """Whether every thread of a process has stopped: a signal reaches them one after another."""
    stats = [thread.joinpath("stat").read_text() for thread in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


async def test_a_frozen_server_is_an_error_and_the_store_reconnects() -> None:
    with available(MariaDBServer) as server:
        connection = MariaDBStoreConnection(server.url(), answer_within=0.5)
        assert [tuple(row) for row in await connection.fetch("SELECT 1")] == [(1,)]
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: is_stopped(server.pid))
            with pytest.raises(StoreUnavailableError, match="TimeoutError") as raised:
                await connection.fetch("SELECT 2")
            assert not raised.value.unreachable
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert [tuple(row) for row in await connection.fetch("SELECT 3")] == [(3,)]
        await connection.aclose()
