"""The work of reads and writes does not grow with the backlog, nor their statements with the batch."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence

import pytest

from pillarbox.core.message import EarlierQuery, Held, KeyQueue
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Retry, Split
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner

WAITING = 20_000
INSERT = """
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
INSERT INTO outbox_message (event_type, ordering_key, destination, payload, held, available_at, attempts)
SELECT 't', ?, 'x', zeroblob(300), ?, ?, ? FROM n
"""


class Meter:
    """Counts the steps of SQLite's virtual machine, in hundreds, and the statements with their values.

    A set, because SQLite reports a statement again for every row for which it fires a trigger.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.statements: set[str] = set()

    def tick(self) -> int:
        self.steps += 1
        return 0

    def reset(self) -> None:
        self.steps = 0
        self.statements.clear()


@pytest.fixture
async def meter(store: SqliteStore) -> Meter:
    meter = Meter()

    def attach(db: sqlite3.Connection) -> None:
        db.set_progress_handler(meter.tick, 100)
        db.set_trace_callback(meter.statements.add)

    await store._connection.read(attach)
    return meter


async def test_fetches_do_not_scan_the_backlog(
    owner: Owner, sql: sqlite3.Connection, store: SqliteStore, meter: Meter
) -> None:
    queue = KeyQueue(0, "hot", "x")
    queries: dict[str, Callable[[], Awaitable[object]]] = {
        "ready": lambda: owner.ready(limit=100),
        "due": lambda: owner.due(limit=100),
        "parked": lambda: owner.parked("y", limit=100),
        "waiting": lambda: owner.waiting(queue, limit=100),
        "orphaned_queues": lambda: store.messages.orphaned_queues([0], limit=100),
    }
    sql.execute(INSERT, (200, "free", None, None, 0))
    sql.execute(INSERT, (1, "hot", None, "2099-01-01T00:00:00.000Z", 1))
    before = {}
    for name, query in queries.items():
        meter.reset()
        await query()
        before[name] = meter.steps
    sql.execute(INSERT, (WAITING, "hot", "waiting", None, 0))
    sql.execute(INSERT, (WAITING, "later", None, "2099-01-01T00:00:00.000Z", 0))
    sql.execute(INSERT, (WAITING, None, "parked", None, 0))
    for name, query in queries.items():
        meter.reset()
        await query()
        assert meter.steps <= 2 * before[name] + 10, name


@pytest.mark.parametrize(
    ("held", "available_at", "attempts"),
    [
        ("waiting", None, 0),
        ("parked", None, 0),
        ("blocked", None, 1),
        (None, "2099-01-01T00:00:00.000Z", 1),
        (None, "2020-01-01T00:00:00.000Z", 0),
    ],
)
async def test_rows_are_checked_individually_only_if_messages_wait(
    owner: Owner,
    sql: sqlite3.Connection,
    meter: Meter,
    held: str | None,
    available_at: str | None,
    attempts: int,
) -> None:
    sql.execute(INSERT, (1, "waiting", None, None, 0))
    sql.execute("UPDATE outbox_message SET held = ?, available_at = ?, attempts = ?", (held, available_at, attempts))
    sql.execute(INSERT, (300, "waiting", None, None, 0))
    meter.reset()
    assert all(message.must_wait for message in await owner.ready(limit=300))
    asked = meter.steps
    sql.execute("DELETE FROM outbox_message WHERE held IS NOT NULL OR available_at IS NOT NULL")
    # A scheduled event blocks no other before its time.
    sql.execute(INSERT, (1, "waiting", None, "2099-01-01T00:00:00.000Z", 0))
    meter.reset()
    messages = await owner.ready(limit=300)
    assert len(messages) == 300
    assert not any(message.must_wait for message in messages)
    assert meter.steps < 0.8 * asked


@pytest.mark.parametrize("way", ["at_once", "row_by_row", "has_earlier"])
async def test_due_events_of_a_key_are_read_once_for_all_its_messages(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection, meter: Meter, way: str
) -> None:
    fetches: dict[str, Callable[[int], Awaitable[Sequence[object]]]] = {
        "at_once": lambda limit: owner.ready(limit=limit),
        "row_by_row": lambda limit: owner.ready(limit=limit, max_bytes=limit * 302 - 1),
        "has_earlier": lambda limit: store.messages.earlier([EarlierQuery(0, "hot", "x", n) for n in range(limit)]),
    }
    fetch = fetches[way]
    sql.execute(INSERT, (200, "hot", None, None, 0))
    # Half of them for a second destination.
    sql.execute("UPDATE outbox_message SET destination = 'y' WHERE row_id % 2")
    sql.execute(INSERT, (1, "other", None, "2020-01-01T00:00:00.000Z", 0))
    meter.reset()
    assert len(await fetch(200)) >= 199
    without = meter.steps
    sql.execute(INSERT, (3_000, "hot", None, "2020-01-01T00:00:00.000Z", 0))
    meter.reset()
    assert len(await fetch(2)) >= 1
    of_two = meter.steps
    meter.reset()
    assert len(await fetch(200)) >= 199
    assert meter.steps <= of_two + 1.5 * without


async def test_due_events_of_other_keys_are_not_read(owner: Owner, sql: sqlite3.Connection, meter: Meter) -> None:
    steps = []
    sql.execute(INSERT, (200, "free", None, None, 0))
    for due in (1, 3_000):
        sql.execute(INSERT, (due, "hot", None, "2020-01-01T00:00:00.000Z", 0))
        meter.reset()
        assert not any(message.must_wait for message in await owner.ready())
        steps.append(meter.steps)
    assert steps[1] <= steps[0] + 2


async def test_a_due_event_precedes_later_ones_of_its_destinations(owner: Owner, sql: sqlite3.Connection) -> None:
    rows: list[tuple[str, str | None, str, str | None]] = [
        ("before", "k", "x", None),
        ("due at x", "k", "x", "2020-01-01T00:00:00.000Z"),
        ("later at x", "k", "x", None),
        ("at y", "k", "y", None),
        ("everywhere", "k", "", None),
        ("due everywhere", "k", "", "2019-01-01T00:00:00.000Z"),
        ("later at y", "k", "y", None),
        ("other key", "l", "", None),
        ("no key", None, "", None),
    ]
    sql.executemany(
        "INSERT INTO outbox_message (event_id, event_type, ordering_key, destination, payload, available_at)"
        " VALUES (?, 't', ?, ?, x'', ?)",
        rows,
    )
    ready = {message.event_id: message.must_wait for message in await owner.ready()}
    assert [event_id for event_id, must_wait in ready.items() if must_wait] == [
        "later at x",
        "everywhere",
        "later at y",
    ]
    assert [event_id for event_id, must_wait in ready.items() if not must_wait] == [
        "before",
        "at y",
        "other key",
        "no key",
    ]


async def test_fetching_more_of_a_queue_costs_only_the_batch(
    owner: Owner, sql: sqlite3.Connection, meter: Meter
) -> None:
    sql.execute(INSERT, (200, "short", "waiting", None, 0))
    sql.execute(INSERT, (WAITING, "long", "waiting", None, 0))
    steps = {}
    for key in ("short", "long"):
        meter.reset()
        assert len(await owner.waiting(KeyQueue(0, key, "x"), limit=100, quota=100)) == 100
        steps[key] = meter.steps
    assert steps["long"] <= 2 * steps["short"]


async def test_the_age_of_a_backlog_is_read_without_a_scan(
    store: SqliteStore, sql: sqlite3.Connection, meter: Meter
) -> None:
    steps = []
    for size in (200, WAITING):
        sql.execute(INSERT, (size, "free", None, None, 0))
        meter.reset()
        assert (await store.admin.inspection.overview(counted=0)).oldest is not None
        steps.append(meter.steps)
    assert steps[1] <= 2 * steps[0] + 10


async def test_the_number_of_statements_of_a_settlement_is_constant(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection, meter: Meter
) -> None:
    outcomes: list[Outcome] = [DELIVERED, Retry(delay=60, error="no"), Dead(error="no"), Dead(error="no", block=True)]
    counts = set()
    for size in (4, 400):
        sql.execute(INSERT, (size, None, None, None, 0))
        messages = await owner.ready()
        assert len(messages) == size
        decisions = [Decision(m, outcomes[n % 4], f"to {n % 7}") for n, m in enumerate(messages)]
        meter.reset()
        assert (await store.writes.settle(owner.epochs, decisions)).count == size
        counts.add(len(meter.statements))
    assert len(counts) == 1


async def test_a_settlement_of_deliveries_takes_fewer_statements(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection, meter: Meter
) -> None:
    counts = []
    for outcome in (DELIVERED, Dead(error="no")):
        sql.execute(INSERT, (50, None, None, None, 0))
        decisions = [Decision(message, outcome, "x") for message in await owner.ready()]
        meter.reset()
        assert (await store.writes.settle(owner.epochs, decisions)).count == 50
        counts.append(len(meter.statements))
    assert counts[0] <= counts[1] - 4


@pytest.mark.parametrize("verb", ["hold", "split", "note"])
async def test_the_number_of_statements_of_other_writes_is_constant(
    owner: Owner, store: SqliteStore, sql: sqlite3.Connection, meter: Meter, verb: str
) -> None:
    counts = set()
    for size in (1, 300):
        sql.execute(INSERT, (size, None, None, None, 0))
        messages = await owner.ready()
        meter.reset()
        if verb == "hold":
            await owner.hold(Held.PARKED, *messages, to="y")
        elif verb == "note":
            await owner.count_attempt("no", *messages)
        else:
            await store.writes.split(owner.epochs, [Split(message, ("a", "b")) for message in messages])
        counts.add(len(meter.statements))
        sql.execute("DELETE FROM outbox_message")
    assert len(counts) == 1
