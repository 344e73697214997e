"""The history: one partition per day, created ahead and dropped whole."""

from datetime import date, timedelta

import pytest

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import RelayRegistration, epochs_of
from pillarbox.core.outcome import DELIVERED, Decision
from pillarbox.core.store import Retention
from pillarbox.stores.mariadb import MariaDBStore, history
from pillarbox.stores.mariadb.history import DAYS_AHEAD, MAX_MOVED, HistoryDays
from tests.integration.mariadb.session import Session

DAY = 86_400.0


def days_of(store: MariaDBStore) -> HistoryDays:
    return store.schema._days


async def age(sql: Session, days: int) -> None:
    """Move the partitions of the history into the past, as time would."""
    names = [
        name
        for (name,) in await sql.execute(
            "SELECT partition_name FROM information_schema.partitions WHERE table_schema = database()"
            " AND table_name = 'outbox_history' ORDER BY partition_ordinal_position"
        )
    ]
    today = await sql.value("SELECT utc_date()")
    first = today - timedelta(days=days)
    parts = [f"PARTITION p{first + timedelta(days=n)}".replace("-", "") for n in range(len(names) - 1)]
    bounds = [f"{part} VALUES LESS THAN ('{first + timedelta(days=n + 1)}')" for n, part in enumerate(parts)]
    await sql.execute("ALTER TABLE outbox_history REMOVE PARTITIONING")
    await sql.execute(
        f"ALTER TABLE outbox_history PARTITION BY RANGE COLUMNS (published_at) ({', '.join(bounds)},"
        " PARTITION later VALUES LESS THAN (MAXVALUE))"
    )


async def insert(sql: Session, event_id: str, published_at: str, count: int = 1) -> None:
    await sql.execute(
        "INSERT INTO outbox_history (id, event_id, destination, event_type, payload, content_type, headers,"
        " schema_version, occurred_at, recorded_at, attempts, deferrals, published_at)"
        " SELECT seq, %s, '', 't', 'x', 'text/plain', '{}', 1, utc_timestamp(), utc_timestamp(), 0, 0,"
        f" {published_at} FROM seq_1_to_{count}",
        event_id,
    )


async def test_the_days_ahead_are_created_once(store: MariaDBStore, sql: Session) -> None:
    today: date = await sql.value("SELECT utc_date()")
    assert await days_of(store).found() == [today + timedelta(days=n) for n in range(DAYS_AHEAD + 1)]
    assert await days_of(store).create() == 0
    await age(sql, 2)
    assert await days_of(store).create() == 2
    assert max(await days_of(store).found()) == today + timedelta(days=DAYS_AHEAD)


async def test_whole_days_are_dropped_once_their_last_event_is_too_old(store: MariaDBStore, sql: Session) -> None:
    await age(sql, 4)
    for days in range(5):
        await insert(sql, f"e{days}", f"utc_timestamp() - INTERVAL {days} DAY")
    # Four, three and two days ago have ended more than a day ago.
    assert await store.pruning.prune(Retention(history=DAY)) == 3
    left = await sql.execute("SELECT event_id FROM outbox_history ORDER BY event_id")
    assert left == [("e0",), ("e1",)]
    assert await store.pruning.prune(Retention(history=DAY)) == 0


async def test_a_reader_delays_a_drop_and_does_not_fail_it(
    store: MariaDBStore, sql: Session, other_session: Session
) -> None:
    await age(sql, 4)
    await other_session.execute("BEGIN")
    await other_session.execute("SELECT count(*) FROM outbox_history")
    assert await store.pruning.prune(Retention(history=DAY)) == 0
    await other_session.execute("COMMIT")
    assert await store.pruning.prune(Retention(history=DAY)) == 3


async def drop_days(sql: Session) -> None:
    """Leave only the partition `later`, as after weeks without the right to ALTER."""
    names = [
        name
        for (name,) in await sql.execute(
            "SELECT partition_name FROM information_schema.partitions WHERE table_schema = database()"
            " AND table_name = 'outbox_history' AND partition_name <> 'later'"
        )
    ]
    await sql.execute(f"ALTER TABLE outbox_history DROP PARTITION {', '.join(names)}")


async def test_settlements_continue_without_a_partition_for_today(store: MariaDBStore, sql: Session) -> None:
    await drop_days(sql)
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    await sql.insert(5)
    found = await store.messages.fetch(Ready(lanes=list(epochs)))
    settled = await store.writes.settle(epochs, [Decision(message, DELIVERED, "") for message in found])
    assert settled.count == 5
    # Old rows there are deleted one by one, and days are created in spite of them.
    await insert(sql, "old", "utc_timestamp() - INTERVAL 3 DAY")
    assert await store.pruning.prune(Retention(history=DAY)) == 1
    assert await days_of(store).create() == DAYS_AHEAD + 1
    assert await sql.value("SELECT count(*) FROM outbox_history") == 5


async def test_a_relay_does_not_move_more_rows_than_it_may_and_an_operator_does(
    store: MariaDBStore, sql: Session
) -> None:
    await drop_days(sql)
    await insert(sql, "many", "utc_timestamp()", MAX_MOVED + 1)
    await store.schema.prepare()
    assert await days_of(store).found() == []
    [check] = [one for one in store.diagnosis.checks() if one.name == "store.history"]
    found = await check.ask()
    assert (found.result, "schema apply" in str(found.fix)) == ("warn", True)
    assert await store.schema.apply() == []
    assert len(await days_of(store).found()) == DAYS_AHEAD + 1
    assert await days_of(store).without_a_day() == 0
    assert await sql.value("SELECT count(*) FROM outbox_history") == MAX_MOVED + 1
    assert (await check.ask()).result == "pass"


async def test_a_move_that_takes_too_long_is_left_for_later(
    store: MariaDBStore, sql: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drop_days(sql)
    await insert(sql, "many", "utc_timestamp()", 5000)
    monkeypatch.setattr(history, "LONGEST_MOVE", 0.001)
    await store.schema.prepare()
    assert await days_of(store).found() == []
    assert await sql.value("SELECT count(*) FROM outbox_history") == 5000
    monkeypatch.setattr(history, "LONGEST_MOVE", 60.0)
    await store.schema.prepare()
    assert len(await days_of(store).found()) == DAYS_AHEAD + 1
