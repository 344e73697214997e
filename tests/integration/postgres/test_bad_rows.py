"""A row that cannot be decoded or settled becomes a dead letter and does not affect others."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import asyncpg
import pytest

from pillarbox import Handlers, NoRetry, Relay, RelayConfig
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventFilter
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Resolved, Retry, Split
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.lookup import dead_letters
from pillarbox.testing.waiting import eventually
from tests.databases import Sql

# Like an installation from before these constraints.
NO_BOUNDS = """
ALTER TABLE outbox_message DROP CONSTRAINT outbox_message_times_ck, DROP CONSTRAINT outbox_message_counters_ck,
  DROP CONSTRAINT outbox_message_available_ck, DROP CONSTRAINT outbox_message_id_ck
"""
BEYOND = ["0044-03-15 BC", "20000-01-01", "infinity", "-infinity", "294276-12-31", "4713-01-01 BC"]


@asynccontextmanager
async def relaying(store: PostgresStore) -> AsyncIterator[list[str]]:
    """A relay with one handler for all events, and the handled ids."""
    handled: list[str] = []
    handlers = Handlers()

    @handlers.on("*", name="all")
    async def handle(event: object, context: object) -> None:
        handled.append(event.event_id)  # type: ignore[attr-defined]

    config = RelayConfig(heartbeat_interval="200ms", lease="12s")
    async with Relay(store=store, transports={"handlers": handlers}, config=config, retry=NoRetry()):
        yield handled


async def insert(sql: Sql, event_id: str, **columns: str) -> None:
    names = ["event_id", "event_type", "payload", *columns]
    values = [f"'{event_id}'", "'t'", "'{}'", *columns.values()]
    await sql.execute(f"INSERT INTO outbox_message ({', '.join(names)}) VALUES ({', '.join(values)})")


async def settled(sql: Sql, table: str, count: int) -> bool:
    return bool(await sql.fetchval(f"SELECT count(*) = $1 FROM {table}", count))


@pytest.mark.parametrize("moment", BEYOND)
@pytest.mark.parametrize("column", ["occurred_at", "recorded_at", "available_at", "first_failed_at", "last_attempt_at"])
async def test_an_unsupported_time_is_rejected_by_the_insert(column: str, moment: str, sql: Sql) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await insert(sql, "bad", **{column: f"'{moment}'"})


async def test_rows_with_unsupported_times_become_dead_letters(store: PostgresStore, sql: Sql) -> None:
    await sql.execute(NO_BOUNDS)
    bad = []
    for number, moment in enumerate(BEYOND):
        for column in ("occurred_at", "recorded_at"):
            bad.append(f"{column}-{number}")
            await insert(sql, bad[-1], ordering_key=f"'k{number}'", **{column: f"'{moment}'"})
            await insert(sql, f"after-{column}-{number}", ordering_key=f"'k{number}'")
    # Due at once; the other extremes are never due.
    bad.append("available")
    await insert(sql, "available", available_at="'0044-03-15 BC'")
    await insert(sql, "never", available_at="'20000-01-01'")
    await insert(sql, "tried", first_failed_at="'infinity'", last_attempt_at="'20000-01-01'")
    good = {"tried"} | {f"after-{event_id}" for event_id in bad if event_id != "available"}
    listed = await store.admin.events.list(EventFilter(), limit=100)
    assert {event.event_id for event in listed.events} == {*bad, *good, "never"}
    overview = await store.admin.inspection.overview()
    assert overview.backlog == len(bad) + len(good) + 1
    async with relaying(store) as handled:
        await eventually(lambda: settled(sql, "outbox_history", len(good)), within=60)
        await eventually(lambda: settled(sql, "outbox_dead_letter", len(bad)), within=60)
    assert set(handled) == good
    dead = await store.admin.dead_letters.list(DeadLetterFilter(), limit=100)
    assert {dead_letter.event_id for dead_letter in dead.dead_letters} == set(bad)
    assert all("cannot be decoded" in dead_letter.error for dead_letter in dead.dead_letters)
    assert (await store.admin.events.show("occurred_at-0")).events[0].occurred_at.year == 1
    pages, after = [], None
    while page := await store.admin.events.list(EventFilter(), limit=7, after=after):
        pages += [event.event_id for event in page.events]
        if (after := page.after) is None:
            break
    assert sorted(pages) == sorted([*bad, *good, "never"])
    # Values corrected in the dead letters can be sent.
    assert await store.admin.dead_letters.retry([dead_letter.id for dead_letter in dead.dead_letters]) == len(bad)
    async with relaying(store) as handled:
        await eventually(lambda: settled(sql, "outbox_history", len(good) + len(bad)), within=60)
    assert set(handled) == set(bad)


async def test_lowering_the_payload_limit_does_not_affect_recorded_events(postgres_url: str, sql: Sql) -> None:
    await sql.execute(
        "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key) "
        "SELECT 'e' || n, 't', convert_to(repeat('1', 3000), 'UTF8'), 'k' || n % 3 FROM generate_series(1, 9) n"
    )
    store = PostgresStore(postgres_url, max_payload=100)
    await store.schema.apply()
    with pytest.raises(asyncpg.CheckViolationError, match="max_payload"):
        await sql.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('t', repeat('x', 200)::bytea)")
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    messages = await store.messages.fetch(Ready(lanes=list(epochs)))
    retried, moved, split, held, dead, *delivered = messages
    assert (await store.writes.split(epochs, [Split(split, ("a", "b"))])).count == 2
    assert (await store.writes.hold(epochs, [Resolved(held, "x")], Held.WAITING)).count == 1
    assert (await store.writes.count_attempt(epochs, [Resolved(moved, "x")], error="no")).count == 1
    decisions = [
        Decision(retried, Retry(delay=60, error="no"), ""),
        Decision(dead, Dead(error="no"), "x"),
        *(Decision(message, DELIVERED, "x") for message in delivered),
    ]
    assert (await store.writes.settle(epochs, decisions)).count == len(decisions)
    [dead_letter] = await dead_letters(store)
    assert await store.admin.dead_letters.retry([dead_letter.id]) == 1
    assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 6
    await store.aclose()


async def test_a_producer_cannot_act_as_a_relay(postgres_url: str, roles: dict[str, str], sql: Sql) -> None:
    producer = await asyncpg.connect(postgres_url, user=roles["producer"])
    await producer.execute("SET pillarbox.internal = 'on'")
    with pytest.raises(asyncpg.CheckViolationError, match="max_payload"):
        await producer.execute(
            "INSERT INTO outbox_message (event_type, payload) VALUES ('t', convert_to(repeat('x', 1048577), 'UTF8'))"
        )
    await producer.close()


async def claimed(store: PostgresStore) -> tuple[Epochs, list[Message]]:
    await store.lanes.join(RelayRegistration(id="a"), lease=60)
    epochs = epochs_of(await store.lanes.acquire("a", limit=64))
    return epochs, await store.messages.fetch(Ready(lanes=list(epochs)))


async def test_a_row_that_cannot_be_settled_becomes_a_dead_letter(store: PostgresStore, sql: Sql) -> None:
    for number in range(20):
        await insert(sql, f"e{number}", attempts="5" if number in (3, 17) else "0")
    await sql.execute("ALTER TABLE outbox_message ADD CONSTRAINT few CHECK (attempts < 6)")
    epochs, messages = await claimed(store)
    answer = await store.writes.settle(epochs, [Decision(m, Retry(delay=60, error="no"), "x") for m in messages])
    assert (answer.count, answer.lost) == (20, frozenset())
    found = await dead_letters(store)
    assert {dead_letter.event_id for dead_letter in found} == {"e3", "e17"}
    assert all("few" in dead_letter.error for dead_letter in found)
    assert await sql.fetchval("SELECT count(*) FROM outbox_message WHERE attempts = 1") == 18


async def test_a_row_that_the_history_rejects_does_not_affect_others(store: PostgresStore, sql: Sql) -> None:
    for number in range(10):
        await insert(sql, f"e{number}")
    await sql.execute("ALTER TABLE outbox_history ADD CONSTRAINT odd CHECK (event_id <> 'e4')")
    epochs, messages = await claimed(store)
    assert (await store.writes.settle(epochs, [Decision(m, DELIVERED, "x") for m in messages])).count == 10
    assert await sql.fetchval("SELECT count(*) FROM outbox_history") == 9
    [dead_letter] = await dead_letters(store)
    assert (dead_letter.event_id, "it was delivered" in dead_letter.error) == ("e4", True)


async def test_counters_stop_at_their_maximum(store: PostgresStore, sql: Sql) -> None:
    await insert(sql, "e", attempts="1000000000", deferrals="1000000000")
    epochs, [message] = await claimed(store)
    assert (await store.writes.count_attempt(epochs, [Resolved(message, "x")], error="no")).count == 1
    [message] = await store.messages.fetch(Ready(lanes=list(epochs)))
    assert (await store.writes.settle(epochs, [Decision(message, Retry(delay=0, error="no"), "x")])).count == 1
    assert await sql.fetchval("SELECT (attempts, deferrals) = (1000000000, 1000000000) FROM outbox_message")
    with pytest.raises(asyncpg.CheckViolationError):
        await insert(sql, "f", attempts="2147483647")


async def test_a_row_that_can_neither_be_settled_nor_dead_lettered_affects_no_other(
    store: PostgresStore, sql: Sql
) -> None:
    for number in range(10):
        await insert(sql, f"e{number}")
    await sql.execute(
        "CREATE TABLE referring (event_id text, destination text DEFAULT '', "
        "FOREIGN KEY (event_id, destination) REFERENCES outbox_message)"
    )
    await sql.execute("INSERT INTO referring VALUES ('e6')")
    epochs, messages = await claimed(store)
    with pytest.raises(RowsRefusedError) as refused:
        await store.writes.settle(epochs, [Decision(m, DELIVERED, "x") for m in messages])
    assert refused.value.positions == {m.position for m in messages if m.event_id == "e6"}
    assert await sql.fetchval("SELECT count(*) FROM outbox_history") == 9
    await store.lanes.release("a")
    async with relaying(store) as handled:
        await insert(sql, "other")
        await eventually(lambda: settled(sql, "outbox_history", 10), within=60)
        await sql.execute("DELETE FROM referring")
        await eventually(lambda: settled(sql, "outbox_message", 0), within=60)
    assert set(handled) == {"e6", "other"}
    # The history may have rejected it just before, and the dead letters accepted it just after.
    kept = "SELECT event_id FROM outbox_history UNION ALL SELECT event_id FROM outbox_dead_letter ORDER BY 1"
    assert [row["event_id"] for row in await sql.fetch(kept)] == [*(f"e{number}" for number in range(10)), "other"]


@pytest.mark.parametrize("in_flight", [False, True])
async def test_a_rejected_operator_request_is_closed_with_the_reason(
    store: PostgresStore, sql: Sql, in_flight: bool
) -> None:
    for number in range(4):
        await insert(sql, f"e{number}", available_at="now() + interval '1 hour'")
    await sql.execute("ALTER TABLE outbox_message ADD CONSTRAINT late CHECK (event_id <> 'e1' OR deferrals = 0)")
    await store.admin.requests.add("retry", [(f"e{number}", "") for number in range(4)])
    epochs, _ = await claimed(store)
    flying = [(await sql.fetchval("SELECT id FROM outbox_message WHERE event_id = 'e0'"), "")] if in_flight else []
    for _ in range(10):
        await store.writes.execute_requests(epochs, in_flight=flying)
    rows = await sql.fetch("SELECT event_id, result FROM outbox_request ORDER BY request_id")
    assert rows[0]["result"] == (None if in_flight else "done")
    assert [row["result"] for row in rows[2:]] == ["done", "done"]
    assert "late" in rows[1]["result"]


RAISING = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.event_id = 'e4' THEN {raises} END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW EXECUTE FUNCTION refuse();
"""
POLICY = """
ALTER TABLE outbox_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE outbox_history FORCE ROW LEVEL SECURITY;
CREATE POLICY seen ON outbox_history FOR SELECT USING (true);
CREATE POLICY tenant ON outbox_history FOR INSERT WITH CHECK (event_id <> 'e4');
"""
LONG_ENTRY = "CREATE INDEX wide ON outbox_history (payload)"


@pytest.mark.parametrize(
    "attached",
    [
        pytest.param(RAISING.format(raises="RAISE EXCEPTION 'no';"), id="raise"),
        pytest.param(RAISING.format(raises="RAISE EXCEPTION 'no' USING ERRCODE = 'MY001';"), id="own code"),
        pytest.param(RAISING.format(raises="PERFORM 1 / 0;"), id="division"),
        pytest.param(RAISING.format(raises="ASSERT false;"), id="assert"),
        pytest.param(POLICY, id="policy"),
        pytest.param(LONG_ENTRY, id="index"),
    ],
)
async def test_a_trigger_on_the_history_affects_only_its_row(
    attached: str, postgres_url: str, roles: dict[str, str], sql: Sql
) -> None:
    random = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 2000) n)"
    for number in range(10):
        await insert(sql, f"e{number}")
    await sql.execute(f"UPDATE outbox_message SET payload = convert_to({random}, 'UTF8') WHERE event_id = 'e4'")
    await sql.execute(attached)
    url = postgres_url.replace("postgres@", f"{roles['relay']}@")
    async with aclosing(PostgresStore(url)) as store:
        epochs, messages = await claimed(store)
        assert (await store.writes.settle(epochs, [Decision(m, DELIVERED, "x") for m in messages])).count == 10
    assert await sql.fetchval("SELECT count(*) FROM outbox_history") == 9
    [dead_letter] = await sql.fetch("SELECT event_id, error FROM outbox_dead_letter")
    assert (dead_letter["event_id"], "it was delivered" in dead_letter["error"]) == ("e4", True)
