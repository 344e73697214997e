"""Checks of a MariaDB server; they change nothing."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.testing.waiting import eventually
from tests.integration.doctor.asking import ask
from tests.integration.mariadb.session import Session
from tests.servers.mariadb import MariaDBServer
from tests.servers.ports import free_port


@pytest.fixture
async def store(mariadb_url: str) -> AsyncIterator[MariaDBStore]:
    async with aclosing(MariaDBStore(mariadb_url)) as store:
        yield store


async def asked(store: MariaDBStore, check: str) -> CheckResult:
    return await ask(store.diagnosis.checks(), check)


@contextmanager
def changed(server: MariaDBServer, name: str, value: str) -> Iterator[None]:
    """A setting of the whole server, for a moment."""
    [(before,)] = server.execute(f"SELECT @@global.{name}")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL {name} = {before!r}")


async def test_a_new_database_passes_every_check_but_durability(store: MariaDBStore) -> None:
    results = {check.name: (await check.ask()).result for check in store.diagnosis.checks()}
    # The server of the tests does not write to a disk.
    assert results.pop("store.durability") == "fail"
    assert set(results.values()) == {"pass"}, results


async def test_a_server_that_is_not_there_fails_without_its_password() -> None:
    async with aclosing(MariaDBStore(f"mariadb://app:secret@127.0.0.1:{free_port()}/shop")) as store:
        found = await asked(store, "store.reachable")
    assert (found.result, "secret" in found.message) == ("fail", False)


async def test_a_read_only_server_fails(store: MariaDBStore, mariadb_server: MariaDBServer) -> None:
    with changed(mariadb_server, "read_only", "1"):
        assert (await asked(store, "store.primary")).result == "fail"
    assert (await asked(store, "store.primary")).result == "pass"


async def test_a_payload_that_does_not_fit_into_a_packet_fails(mariadb_server: MariaDBServer, mariadb_url: str) -> None:
    async with aclosing(MariaDBStore(mariadb_url, max_payload=12 << 20)) as store:
        found = await asked(store, "store.packet")
        assert (found.result, "max_allowed_packet" in found.fix) == ("fail", True)
        with changed(mariadb_server, "max_allowed_packet", str(64 << 20)):
            assert (await asked(store, "store.packet")).result == "pass"


async def test_a_dropped_index_fails_with_its_name(store: MariaDBStore, mariadb_url: str) -> None:
    async with Session(mariadb_url) as sql:
        await sql.execute("ALTER TABLE outbox_message DROP KEY recorded_idx")
    found = await asked(store, "store.indexes")
    assert (found.result, "recorded_idx of outbox_message" in found.message) == ("fail", True)


async def test_a_transaction_that_stays_open_is_a_warning(store: MariaDBStore, mariadb_url: str) -> None:
    async with Session(mariadb_url) as sql:
        await sql.execute("BEGIN")
        await sql.execute("INSERT INTO outbox_audit (what) VALUES ('canary')")

        async def is_seen() -> bool:
            found = await ask(store.diagnosis.checks(long_transaction=0.001), "store.horizon")
            return found.result == "warn" and "canary" not in found.message

        # The server refreshes its list of transactions ten times per second, if it is not asked more often.
        await eventually(is_seen, pause=0.15)
        await sql.execute("ROLLBACK")


async def test_tomorrow_without_a_partition_is_a_warning(store: MariaDBStore, mariadb_url: str) -> None:
    async with Session(mariadb_url) as sql:
        for day in range(1, 8):
            name = await sql.value(f"SELECT date_format(utc_date() + INTERVAL {day} DAY, 'p%Y%m%d')")
            await sql.execute(f"ALTER TABLE outbox_history DROP PARTITION {name}")
    assert (await asked(store, "store.history")).result == "warn"
    await store.schema.prepare()
    assert (await asked(store, "store.history")).result == "pass"


async def test_the_sizes_list_tables_and_days(store: MariaDBStore) -> None:
    sizes = await store.diagnosis.table_sizes()
    names = {size.name for size in sizes.parts}
    assert {"outbox_message", "outbox_history_later", "outbox_lane"} <= names
    assert all(size.bytes > 0 for size in sizes.parts)
