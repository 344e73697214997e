"""A plan that was made while the tables were almost empty is as good when they are full: shown by the plan that ran.

The relay's connections keep one plan for each statement. auto_explain on these very connections tells what ran.
"""

import json
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import asyncpg
import pytest

from pillarbox.core.fetch import Bounds, Due, FetchQuery, NextInQueues, Parked, Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import EarlierQuery, Held, KeyQueue, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Resolved, Retry, Split
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from tests.databases import Sql
from tests.plans.explain import Cost, cost_of

pytestmark = pytest.mark.contrib

BATCH = 100
LANES = 64
EXECUTIONS = 10
CHECKED = (0, EXECUTIONS - 1)
"""The first five executions may have plans of their own, and what follows another one: those between are small."""
# Twice the batch, and the few probes that each lane always costs.
MOST_ROWS = 2 * BATCH + 4 * LANES
# What is brought goes through a dozen nodes; a join that compares everything with everything takes BATCH * BATCH.
MOST_COMPARED = 40 * BATCH

FILL = """
INSERT INTO outbox_message (event_type, payload, ordering_key, destination)
SELECT 'a', 'x', 'key ' || g, CASE g % 2 WHEN 0 THEN 'orders' ELSE '' END FROM generate_series(1, 30000) g;
-- One key whose first event waits, another one whose first event is gone.
INSERT INTO outbox_message (event_type, payload, ordering_key, destination, available_at, attempts)
VALUES ('a', 'x', 'stuck', 'orders', now() + interval '1 hour', 1);
INSERT INTO outbox_message (event_type, payload, ordering_key, destination, held)
SELECT 'a', 'x', CASE g % 2 WHEN 0 THEN 'stuck' ELSE 'flowing' END, 'orders', 'waiting'
FROM generate_series(1, 25000) g;
INSERT INTO outbox_message (event_type, payload, ordering_key, destination, held)
SELECT 'a', 'x', 'aside ' || g, 'closed', 'parked' FROM generate_series(1, 20000) g;
INSERT INTO outbox_message (event_type, payload, ordering_key, available_at)
SELECT 'a', 'x', 'delayed ' || g % 100, now() + interval '1 hour' FROM generate_series(1, 15000) g;
INSERT INTO outbox_message (event_type, payload, ordering_key, destination, available_at, attempts)
SELECT 'a', 'x', 'retry ' || g, 'orders', now() - interval '1 minute', 1 FROM generate_series(1, 10000) g;
INSERT INTO outbox_ledger (event_id, destination, status)
SELECT 'p' || g, 'orders', 'SUCCESS' FROM generate_series(1, 20000) g;
INSERT INTO outbox_request (action, event_id, done_at) SELECT 'retry', 'q' || g, now() FROM generate_series(1, 20000) g;
"""
FEW = """
INSERT INTO outbox_message (event_type, payload, ordering_key, destination)
SELECT 'a', 'x', 'few ' || g, 'orders' FROM generate_series(1, 20) g
"""
# While a snapshot is open, vacuum cannot remove these rows.
BLOAT = """
INSERT INTO outbox_message (event_type, payload, ordering_key)
SELECT 'a', 'x', 'k' || g FROM generate_series(1, 10000) g;
INSERT INTO outbox_message (event_type, payload, ordering_key, held)
SELECT 'a', 'x', 'k' || g, 'parked' FROM generate_series(1, 10000) g;
DELETE FROM outbox_message;
"""
EXPLAIN = """
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on;
SET auto_explain.log_buffers = on;
SET auto_explain.log_timing = off;
SET auto_explain.log_format = json;
SET auto_explain.log_level = notice;
"""


class Plans:
    """The plans of what one connection of the store ran, as it ran."""

    def __init__(self) -> None:
        self._heard: list[dict[str, Any]] = []
        self.matter = False
        """Of a table that is almost empty any plan is good."""

    async def listen(self, connection: PostgresStoreConnection) -> None:
        async with connection.open() as sql:
            await sql.execute(EXPLAIN)
            sql.add_log_listener(lambda _, message: self._hear(str(message)))

    def _hear(self, message: str) -> None:
        reported = json.loads(message.partition("plan:\n")[2])
        # The driver asks for the types it does not know yet.
        if '"public".' in reported["Query Text"]:
            self._heard.append(reported["Plan"])

    def take(self) -> Iterator[tuple[Cost, list[dict[str, Any]]]]:
        """The cost and the nodes of each plan that ran since the last call; at least one."""
        assert self._heard
        heard, self._heard = self._heard, []
        for root in heard if self.matter else ():
            yield cost_of(root), list(_nodes(root))


def _nodes(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield root
    for child in root.get("Plans", ()):
        yield from _nodes(child)


def check(plans: Plans, *, rows: int = MOST_ROWS, compared: int = MOST_COMPARED) -> None:
    """What ran stayed near its batch: no walk over a table, no comparison of everything with everything."""
    for cost, nodes in plans.take():
        assert "outbox_message" not in [node.get("Relation Name") for node in nodes if node["Node Type"] == "Seq Scan"]
        assert cost.everywhere <= rows, str(cost)
        assert cost.compared <= compared, str(cost)
        # An array is compared element by element, which no count of rows shows.
        assert not [node for node in nodes if "<> ALL" in node.get("Filter", "")], str(cost)


async def fill(sql: Sql, plans: Plans) -> None:
    await sql.execute(FILL)
    plans.matter = True


async def owned(store: PostgresStore) -> Epochs:
    await store.lanes.join(RelayRegistration(id="a"), lease=600)
    return epochs_of(await store.lanes.acquire("a", limit=LANES))


async def fetch(store: PostgresStore, lanes: list[int], *, limit: int = BATCH) -> list[Message]:
    return await store.messages.fetch(Ready(lanes=lanes, bounds=Bounds(limit=limit, quota=-(-limit // LANES))))


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture(params=["drained", "bloated"])
async def almost_empty(request: pytest.FixtureRequest, postgres_url: str, sql: Sql) -> AsyncIterator[None]:
    """A table of a few messages after many others were delivered: vacuumed, or kept from that by a transaction."""
    # Only a test that asks for statistics has them.
    await sql.execute("ALTER TABLE outbox_message SET (autovacuum_enabled = off)")
    await sql.execute("VACUUM ANALYZE")
    long_transaction = await asyncpg.connect(postgres_url)
    if request.param == "bloated":
        await long_transaction.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox_message")
        await sql.execute(BLOAT)
    await sql.execute(FEW)
    yield
    await long_transaction.close()


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.usefixtures("almost_empty")
async def test_a_fetch_planned_for_an_empty_table_stays_near_its_batch(
    postgres_url: str, sql: Sql, marks: bool
) -> None:
    plans = Plans()
    async with aclosing(PostgresStore(postgres_url)) as store:
        lanes = list(await owned(store))
        # Every fetch is slow, or none is.
        store.messages.low_water_marks.slow = -1 if marks else math.inf
        await plans.listen(store.messages._connection)

        async def waiting() -> None:
            rows = await sql.fetch("SELECT DISTINCT lane, key FROM outbox_message WHERE key IN ('stuck', 'flowing')")
            queues = [KeyQueue(row["lane"], row["key"], "orders") for row in rows] or [KeyQueue(0, "flowing", "orders")]
            bounds = Bounds(limit=BATCH, quota=BATCH)
            queries: list[FetchQuery] = [
                Due(lanes=lanes, bounds=bounds),
                Parked(lanes=lanes, destinations=["closed", "orders"], bounds=Bounds(limit=BATCH, quota=2)),
                NextInQueues(queues=queues, bounds=bounds),
            ]
            for query in queries:
                await store.messages.fetch(query)
                check(plans)
            await store.messages.earlier([EarlierQuery(*queue, 2**60) for queue in queues] * (BATCH // 2))
            await store.messages.orphaned_queues(lanes, limit=BATCH)
            await store.messages.parked_destinations(lanes)
            check(plans)

        await fetch(store, lanes)
        await waiting()
        await fill(sql, plans)
        for analyzed in (False, True):
            if analyzed:
                await sql.execute("ANALYZE")
            in_flight = [message.position for message in await fetch(store, lanes, limit=3000)]
            assert len(in_flight) > 2000
            check(plans, rows=2 * 3000 + 4 * LANES, compared=40 * 3000)
            for number in range(EXECUTIONS):
                for flying in (0, 10, len(in_flight)) if number in CHECKED else (0,):
                    bounds = Bounds(limit=BATCH, quota=2, in_flight=in_flight[:flying])
                    found = await store.messages.fetch(Ready(lanes=lanes, bounds=bounds))
                    assert len(found) == BATCH
                    assert not {message.position for message in found} & set(in_flight[:flying])
                    check(plans, rows=MOST_ROWS + flying, compared=MOST_COMPARED + 4 * flying)
            assert (await store.messages.low_water_marks.known(lanes) is not None) == marks
            await waiting()


@pytest.mark.usefixtures("almost_empty")
async def test_a_write_planned_for_an_empty_table_stays_near_its_batch(postgres_url: str, sql: Sql) -> None:
    plans = Plans()
    async with (
        aclosing(PostgresStore(postgres_url, ledger=True)) as store,
        aclosing(PostgresStore(postgres_url, history=False)) as forgetting,
    ):
        epochs = await owned(store)
        lanes = list(epochs)
        for one in (store, forgetting):
            await plans.listen(one.writes._connection)

        async def write(most: int) -> None:
            """One batch of each write, of `most` messages each."""
            found = await fetch(store, lanes, limit=6 * most)
            delivered, gone, dead, retried, held, split = batches = [found[number::6] for number in range(6)]
            assert all(len(batch) == most for batch in batches)
            assert store.ledger is not None
            await store.ledger.begin([Resolved(message, "orders") for message in delivered])
            assert (await store.writes.settle(epochs, _all(delivered, DELIVERED))).count == len(delivered)
            assert (await forgetting.writes.settle(epochs, _all(gone, DELIVERED))).count == len(gone)
            assert (await store.writes.settle(epochs, _all(dead, Dead(error="no")))).count == len(dead)
            assert (await store.writes.settle(epochs, _all(retried, Retry(delay=60, error="no")))).count == len(retried)
            resolved = [Resolved(message, message.destination) for message in held]
            assert (await store.writes.hold(epochs, resolved, Held.PARKED)).count == len(held)
            copies = [Split(message, ("x", "y")) for message in split]
            assert (await store.writes.split(epochs, copies)).count == 2 * len(split)
            await sql.execute("INSERT INTO outbox_request (action, event_id) VALUES ('retry', 'unknown')")
            assert (await store.writes.execute_requests(epochs)).done == 1
            check(plans)
            await sql.execute("DELETE FROM outbox_message WHERE destination IN ('x', 'y')")

        await write(1)
        await fill(sql, plans)
        for analyzed in (False, True):
            if analyzed:
                await sql.execute("ANALYZE")
            for number in range(EXECUTIONS):
                await write(BATCH if number in CHECKED else 1)


def _all(messages: list[Message], outcome: Any) -> list[Decision]:
    return [Decision(message, outcome, message.destination or "orders", 0.1) for message in messages]
