"""History partitions by day: missing partitions and concurrent readers block nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from pillarbox import Relay
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.observations import StoreFailed
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.core.store import Retention
from pillarbox.relay.coordinator import RETENTION_INTERVAL
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory import MemoryTransport
from tests.databases import Sql

DAY = 86_400.0

PUT = """INSERT INTO outbox_history (id, event_id, destination, event_type, payload, content_type, headers,
  schema_version, occurred_at, recorded_at, attempts, deferrals, published_at)
VALUES (1, $1, '', 'a', '', 'application/json', '{}', 1, now(), now(), 0, 0, $2) RETURNING tableoid::regclass::text"""

DAYS = """SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'outbox_history'::regclass AND c.relname ~ '_[0-9]{8}$' ORDER BY 1"""


def today() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def table(day: datetime) -> str:
    return f"outbox_history_{day:%Y%m%d}"


async def days(sql: Sql) -> list[str]:
    return [row["relname"] for row in await sql.fetch(DAYS)]


async def make_past_days(sql: Sql, count: int) -> list[datetime]:
    past = [today() - timedelta(days=number) for number in range(1, count + 1)]
    for day in past:
        await sql.execute(
            f"CREATE TABLE {table(day)} PARTITION OF outbox_history"
            f" FOR VALUES FROM ('{day:%Y-%m-%d} 00:00+00') TO ('{day + timedelta(days=1):%Y-%m-%d} 00:00+00')"
        )
    return past


async def deliver_one(store: PostgresStore, sql: Sql) -> str:
    """Settle one message; returns the partition of its history row."""
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    await sql.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('a', '{}')")
    [message] = await store.messages.fetch(Ready(lanes=list(epochs)))
    settled = await store.writes.settle(epochs, [Decision(message, DELIVERED, "x")])
    assert settled.count == 1
    place: str = await sql.fetchval("SELECT tableoid::regclass::text FROM outbox_history")
    return place


async def test_a_delivered_message_goes_to_the_partition_of_its_day(store: PostgresStore, sql: Sql) -> None:
    before = table(today())
    assert await deliver_one(store, sql) in (before, table(today()))


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
async def test_days_change_at_midnight_utc(zone: str, store: PostgresStore, sql: Sql) -> None:
    await sql.execute("DROP TABLE " + ", ".join(await days(sql)))
    database = await sql.fetchval("SELECT current_database()")
    await sql.execute(f"ALTER DATABASE \"{database}\" SET timezone = '{zone}'")
    await sql.execute(f"SET timezone = '{zone}'")
    await sql.fetchval("SELECT outbox_history_create(7)")
    midnight = today() + timedelta(days=2)
    assert await sql.fetchval(PUT, "before", midnight - timedelta(microseconds=1)) == table(
        midnight - timedelta(days=1)
    )
    assert await sql.fetchval(PUT, "after", midnight) == table(midnight)


async def test_partitions_are_created_seven_days_ahead(store: PostgresStore, sql: Sql) -> None:
    await store.schema.prepare()
    made = await days(sql)
    assert made == [table(today() + timedelta(days=number)) for number in range(8)]
    await store.schema.prepare()
    assert await days(sql) == made


async def test_settlements_work_without_partitions(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("DROP TABLE " + ", ".join(await days(sql)))
    assert await deliver_one(store, sql) == "outbox_history_default"

    await store.schema.prepare()

    # Rows of today stay in the default partition; later days get their own partitions.
    assert await days(sql) == [table(today() + timedelta(days=number)) for number in range(1, 8)]
    assert await sql.fetchval("SELECT count(*) FROM outbox_history") == 1


async def test_expired_partitions_are_dropped(store: PostgresStore, sql: Sql) -> None:
    yesterday, before, old = await make_past_days(sql, 3)
    for day in (yesterday, before, old):
        await sql.fetchval(PUT, "x", day)
    assert await store.pruning.prune(Retention(history=2 * DAY)) == 1
    assert table(old) not in await days(sql)
    assert await sql.fetchval("SELECT count(*) FROM outbox_history") == 2


async def test_a_reader_delays_the_drop_of_its_partition_without_blocking(
    store: PostgresStore, sql: Sql, other_session: Sql
) -> None:
    [yesterday] = await make_past_days(sql, 1)
    reading = other_session.transaction()
    await reading.start()
    await other_session.execute(f"SELECT FROM {table(yesterday)}")

    assert await store.pruning.prune(Retention(history=0)) == 0
    assert await deliver_one(store, sql)
    assert table(yesterday) in await days(sql)

    await reading.rollback()
    assert await store.pruning.prune(Retention(history=0)) == 1
    assert table(yesterday) not in await days(sql)


async def test_partitions_are_not_created_against_a_reader(store: PostgresStore, sql: Sql, other_session: Sql) -> None:
    last = table(today() + timedelta(days=7))
    await sql.execute(f"DROP TABLE {last}")
    reading = other_session.transaction()
    await reading.start()
    await other_session.execute("LOCK TABLE outbox_history IN ACCESS EXCLUSIVE MODE")
    await store.schema.prepare()
    await reading.rollback()
    assert last not in await days(sql)
    await store.schema.prepare()
    assert last in await days(sql)


async def test_the_default_partition_is_pruned_in_batches(store: PostgresStore, sql: Sql) -> None:
    for number in range(25):
        await sql.fetchval(PUT, f"old {number}", today() - timedelta(days=30))
    assert await store.pruning.prune(Retention(history=7 * DAY), limit=10) == 10
    assert await store.pruning.prune(Retention(history=7 * DAY), limit=10) == 10
    assert await store.pruning.prune(Retention(history=7 * DAY), limit=10) == 5
    assert await store.pruning.prune(Retention(history=7 * DAY), limit=10) == 0


async def test_a_referenced_partition_is_emptied_instead_of_dropped(store: PostgresStore, sql: Sql) -> None:
    past = await make_past_days(sql, 4)
    for day in past:
        await sql.fetchval(PUT, f"of {day:%d}", day)
    viewed, referred = table(past[3]), table(past[2])
    await sql.execute(f"CREATE VIEW report AS SELECT event_id FROM {viewed}")
    await sql.execute(f"ALTER TABLE {referred} ADD UNIQUE (event_id)")
    await sql.execute(f"CREATE TABLE receipt (event_id text REFERENCES {referred} (event_id))")
    kept = Retention(history=DAY)
    assert await store.pruning.prune(kept) == 2
    assert set(await days(sql)) >= {viewed, referred, table(past[0])}
    assert table(past[1]) not in await days(sql)
    rows = await sql.fetch("SELECT event_id FROM outbox_history ORDER BY 1")
    assert {row["event_id"] for row in rows} == {f"of {day:%d}" for day in (past[0], past[2])}
    # Nothing is left to do; otherwise the caller would loop forever.
    assert await store.pruning.prune(kept) == 0


async def test_rows_kept_by_a_foreign_key_do_not_affect_others(store: PostgresStore, sql: Sql) -> None:
    await sql.execute(
        "INSERT INTO outbox_audit (what, at) SELECT 'retry', now() - interval '9 days' FROM generate_series(1, 3)"
    )
    await sql.execute("CREATE TABLE case_file (dead_letter bigint REFERENCES outbox_dead_letter)")
    await sql.execute(
        "INSERT INTO outbox_dead_letter (id, event_id, destination, event_type, payload, content_type, headers,"
        " schema_version, occurred_at, recorded_at, attempts, deferrals, error, dead_lettered_at)"
        " VALUES (1, 'e', '', 'a', '', '', '{}', 1, now(), now(), 0, 0, 'no', now() - interval '9 days')"
    )
    await sql.execute("INSERT INTO case_file SELECT dead_letter_id FROM outbox_dead_letter")
    kept = Retention(dead=DAY, audit=DAY)
    assert await store.pruning.prune(kept) == 3
    with pytest.raises(RowsRefusedError, match="case_file"):
        await store.pruning.prune(kept)


async def test_a_relay_reports_rows_kept_by_a_foreign_key(store: PostgresStore, sql: Sql) -> None:
    await sql.execute("CREATE TABLE case_file (dead_letter bigint REFERENCES outbox_dead_letter)")
    await sql.execute(
        "INSERT INTO outbox_dead_letter (id, event_id, destination, event_type, payload, content_type, headers,"
        " schema_version, occurred_at, recorded_at, attempts, deferrals, error, dead_lettered_at)"
        " VALUES (1, 'e', '', 'a', '', '', '{}', 1, now(), now(), 0, 0, 'no', now() - interval '200 days')"
    )
    await sql.execute("INSERT INTO case_file SELECT dead_letter_id FROM outbox_dead_letter")
    reported: list[StoreFailed] = []

    def tell(observation: object) -> None:
        if isinstance(observation, StoreFailed):
            reported.append(observation)

    async def is_reported() -> bool:
        return bool(reported)

    transports = {"memory": MemoryTransport()}
    async with Relay(store=store, transports=transports, observers=[tell]):
        await eventually(is_reported, within=60)
    assert "case_file" in reported[0].error
    # Until the next run; the relay does not restart as after an outage.
    assert [failure.delay for failure in reported] == [RETENTION_INTERVAL]
