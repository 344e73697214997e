"""The grants of the reference are enough, and no more than that."""

import re
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from pillarbox import Event, Inbox, Outbox
from pillarbox.core.errors import SchemaError
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.outcome import DELIVERED, Decision, Retry
from pillarbox.core.store import Retention
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.mariadb.history import DAYS_AHEAD
from tests.integration.mariadb.session import Session
from tests.integration.record.conftest import committed_ids
from tests.integration.record.mariadb_ways import pymysql_connection
from tests.servers.mariadb import MariaDBServer

PAGE = Path(__file__).parents[3] / "docs/reference/mariadb.md"
USERS = ("producer", "relay", "reader")


@pytest.fixture
def users(mariadb_server: MariaDBServer, mariadb_url: str) -> Iterator[dict[str, str]]:
    """The URL of each user, with the grants of the page."""
    [script] = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    database = mariadb_url.rpartition("/")[2]
    for user in USERS:
        mariadb_server.execute(f"CREATE USER {user}")
    try:
        for statement in re.findall(r"^GRANT [^;]+", script, re.MULTILINE):
            mariadb_server.execute(statement.replace("shop.", f"{database}."))
        yield {user: mariadb_url.replace("root@", f"{user}@") for user in USERS}
    finally:
        for user in USERS:
            mariadb_server.execute(f"DROP USER {user}")


async def test_a_producer_records_and_admits_and_reads_nothing(users: dict[str, str], mariadb_url: str) -> None:
    with pymysql_connection(users["producer"]) as connection:
        for outbox in (Outbox(), Outbox(strict_order=True), Outbox(duplicate="ignore")):
            outbox.record(connection, Event("a", {}, event_id=f"e{id(outbox)}", key="k"))
        Outbox(duplicate="ignore").record(connection, Event("a", {}, event_id="same"), Event("a", {}, event_id="same"))
        assert Inbox().admit(connection, "billing", "e1")
        connection.commit()
        with connection.cursor() as cursor, pytest.raises(Exception, match="denied"):
            cursor.execute("SELECT payload FROM outbox_message")
    assert len(committed_ids(mariadb_url)) == 4


async def test_a_relay_does_its_work(users: dict[str, str], mariadb_url: str) -> None:
    async with aclosing(MariaDBStore(users["relay"])) as store, Session(mariadb_url) as sql:
        await store.schema.check()
        await sql.execute("ALTER TABLE outbox_history DROP PARTITION " + await _last_day(sql))
        await store.schema.prepare()
        await store.lanes.join(RelayRegistration(id="a"), lease=60)
        assert await store.lanes.renew("a", lease=60)
        epochs = epochs_of(await store.lanes.acquire("a", limit=64))
        await sql.insert(2)
        first, second = await store.messages.fetch(Ready(lanes=list(epochs)))
        outcomes = [Decision(first, DELIVERED, "x"), Decision(second, Retry(delay=1, error="no"), "x")]
        assert (await store.writes.settle(epochs, outcomes)).count == 2
        assert await store.pruning.prune(Retention(history=0, dead=0, inbox=0, audit=0)) >= 0


async def test_a_relay_without_the_right_to_alter_goes_on(
    users: dict[str, str], mariadb_server: MariaDBServer, mariadb_url: str
) -> None:
    database = mariadb_url.rpartition("/")[2]
    mariadb_server.execute(f"REVOKE ALTER, CREATE, DROP ON {database}.outbox_history FROM relay")
    async with aclosing(MariaDBStore(users["relay"])) as store, Session(mariadb_url) as sql:
        await sql.execute("ALTER TABLE outbox_history DROP PARTITION " + await _last_day(sql))
        await store.schema.prepare()
        assert len(await store.schema._days.found()) == DAYS_AHEAD


async def _last_day(sql: Session) -> str:
    return str(await sql.value("SELECT date_format(utc_date() + INTERVAL 7 DAY, 'p%Y%m%d')"))


async def test_a_reader_lists_and_changes_nothing(users: dict[str, str]) -> None:
    async with aclosing(MariaDBStore(users["reader"])) as store:
        assert (await store.admin.inspection.overview()).backlog == 0
        with pytest.raises(SchemaError, match="denied"):
            await store.admin.audit.add("test")
