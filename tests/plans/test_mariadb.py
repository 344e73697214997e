"""On MariaDB a fetch, a write or a page reads about its batch, whatever the tables contain, as the server counts."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import ROWS_SCANNED, EventFilter
from pillarbox.admin.replay import HISTORY_SCANNED, Replay
from pillarbox.admin.states import EventState
from pillarbox.core.fetch import Bounds, Due, NextInQueues, Parked, Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import EarlierQuery, Held, KeyQueue, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Resolved, Retry, Split
from pillarbox.stores.mariadb import MariaDBStore
from tests.databases import make_mariadb_tables, mariadb_database
from tests.integration.mariadb.session import Session
from tests.servers.mariadb import MariaDBServer

BATCH = 500
LANES = list(range(64))
HOT_KEYS = 50
# A few reads for each message of a batch, of indexes, rows and temporary tables, and the probes that each lane costs.
MOST = 16 * BATCH + 16 * len(LANES)
PAGE = 50
MOST_OF_A_PAGE = 60 * PAGE

_LOAD = [
    "INSERT INTO outbox_history (id, event_id, destination, event_type, payload, content_type, headers, schema_version,"
    " occurred_at, recorded_at, attempts, deferrals, published_at) SELECT seq, concat('h', seq), 'orders',"
    " 'order.placed', 'x', 'application/json', '{}', 1, utc_timestamp(), utc_timestamp(), 0, 0, utc_timestamp()"
    " FROM seq_1_to_50000",
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, available_at)"
    " SELECT concat('d', seq), 'orders', 'order.placed', 'x', concat('delayed ', seq % 1000),"
    " utc_timestamp() + INTERVAL 1 DAY FROM seq_1_to_50000",
    # One key whose first event waits for a retry, and all its later events.
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, available_at, attempts)"
    " VALUES ('head', 'orders', 'order.placed', 'x', 'stuck', utc_timestamp() + INTERVAL 1 HOUR, 1)",
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, held)"
    " SELECT concat('b', seq), 'orders', 'order.placed', 'x', 'stuck', 'waiting' FROM seq_1_to_20000",
    # Another key with as many waiting events whose first event is gone: a relay fetches its next ones.
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, held)"
    " SELECT concat('f', seq), 'orders', 'order.placed', 'x', 'flowing', 'waiting' FROM seq_1_to_20000",
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, held)"
    " SELECT concat('a', seq), 'closed', 'order.placed', 'x', concat('aside ', seq), 'parked' FROM seq_1_to_20000",
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key, available_at, attempts)"
    " SELECT concat('r', seq), 'orders', 'order.placed', 'x', concat('retry ', seq),"
    " utc_timestamp() - INTERVAL 1 MINUTE, 1 FROM seq_1_to_10000",
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key) SELECT concat('k', seq),"
    f" 'orders', 'order.placed', repeat('x', 320), concat('hot ', seq % {HOT_KEYS}) FROM seq_1_to_20000",
    "INSERT INTO outbox_dead_letter (id, event_id, destination, event_type, `key`, payload, content_type, headers,"
    " schema_version, occurred_at, recorded_at, attempts, deferrals, error) SELECT seq, concat('x', seq), 'orders',"
    " 'order.placed', concat('dead ', seq % 1000), 'x', 'application/json', '{}', 1, utc_timestamp(), utc_timestamp(),"
    " 3, 0, 'no' FROM seq_1_to_20000",
    # The stuck and the flowing key go on receiving.
    "INSERT INTO outbox_message (event_id, destination, event_type, payload, ordering_key) SELECT concat('s', seq),"
    " 'orders', 'order.placed', 'x', CASE seq % 2 WHEN 0 THEN 'stuck' ELSE 'flowing' END FROM seq_1_to_1000",
    "INSERT INTO outbox_inbox (consumer, event_id) SELECT concat('consumer ', seq % 3), concat('e', seq)"
    " FROM seq_1_to_30000",
    "ANALYZE TABLE outbox_message, outbox_history, outbox_dead_letter, outbox_inbox",
]


async def _load(url: str) -> None:
    await make_mariadb_tables(url)
    async with Session(url) as session:
        for statement in _LOAD:
            await session.execute(statement)


@pytest.fixture(scope="module")
def bad_day_url(mariadb_server: MariaDBServer) -> Iterator[str]:
    """A full database. The tests that write to it come last."""
    with mariadb_database(mariadb_server) as url:
        asyncio.run(_load(url))
        yield url


class Measured(MariaDBStore):
    """A store that tells how many rows and index entries the server read for it."""

    async def reads(self) -> int:
        total = 0
        for connection in self._connections:
            if connection._connection is not None:
                counted = await connection.fetch("SHOW SESSION STATUS LIKE 'Handler_read%'")
                total += sum(int(count) for name, count in counted if name != "Handler_read_rnd_deleted")
        return total


@pytest.fixture
async def store(bad_day_url: str) -> AsyncIterator[Measured]:
    store = Measured(bad_day_url)
    yield store
    await store.aclose()


async def cost(store: Measured, awaited: Any) -> tuple[int, Any]:
    """What was read, and the result."""
    before = await store.reads()
    # What the first of the two questions itself reads.
    asked = await store.reads() - before
    result = await awaited
    return await store.reads() - before - 2 * asked, result


async def lane_of(store: MariaDBStore, key: str) -> int:
    async with store.messages._connection.open() as connection, connection.cursor() as cursor:
        await cursor.execute("SELECT lane FROM outbox_message WHERE ordering_key = %s LIMIT 1", (key,))
        [(lane,)] = await cursor.fetchall()
        return int(lane)


async def test_a_fetch_of_ready_messages(store: Measured) -> None:
    bounds = Bounds(limit=BATCH, quota=2 * BATCH // HOT_KEYS)
    read, found = await cost(store, store.messages.fetch(Ready(lanes=LANES, bounds=bounds)))
    assert len(found) == BATCH
    # Each has a key and lies in a lane where others wait: five probes.
    assert read <= MOST + 16 * BATCH


async def test_a_fetch_ahead_with_1500_in_flight(store: Measured) -> None:
    first = Bounds(limit=3 * BATCH, quota=6 * BATCH // HOT_KEYS)
    in_flight = {message.position for message in await store.messages.fetch(Ready(lanes=LANES, bounds=first))}
    bounds = Bounds(limit=BATCH, quota=2 * BATCH // HOT_KEYS, in_flight=in_flight)
    read, found = await cost(store, store.messages.fetch(Ready(lanes=LANES, bounds=bounds)))
    assert len(found) == BATCH
    assert not in_flight & {message.position for message in found}
    assert read <= MOST + 16 * BATCH + 3 * BATCH


async def test_a_fetch_of_due_messages(store: Measured) -> None:
    bounds = Bounds(limit=BATCH, quota=BATCH // 50)
    read, found = await cost(store, store.messages.fetch(Due(lanes=LANES, bounds=bounds)))
    assert len(found) == BATCH
    assert read <= MOST + 16 * BATCH


async def test_a_fetch_of_parked_messages(store: Measured) -> None:
    bounds = Bounds(limit=BATCH, quota=BATCH // 50)
    read, found = await cost(
        store, store.messages.fetch(Parked(lanes=LANES, destinations=["closed", "other"], bounds=bounds))
    )
    assert len(found) == BATCH
    assert read <= MOST + 16 * BATCH


async def test_a_query_for_destinations_with_parked_messages(store: Measured) -> None:
    read, found = await cost(store, store.messages.parked_destinations(LANES))
    assert found == ["closed"]
    assert read <= MOST


async def test_a_fetch_from_a_queue_of_20000(store: Measured) -> None:
    queue = KeyQueue(await lane_of(store, "flowing"), "flowing", "orders")
    bounds = Bounds(limit=BATCH, quota=BATCH)
    read, found = await cost(store, store.messages.fetch(NextInQueues(queues=[queue], bounds=bounds)))
    assert len(found) == BATCH
    assert read <= MOST


async def test_a_query_whether_an_earlier_event_is_pending(store: Measured) -> None:
    lane = await lane_of(store, "stuck")
    queries = [EarlierQuery(lane, "stuck", "orders", 10**9 + n) for n in range(100)]
    read, found = await cost(store, store.messages.earlier(queries))
    assert found == [True] * 100
    assert read <= 20 * 100


async def test_a_search_for_orphaned_queues(store: Measured) -> None:
    read, found = await cost(store, store.messages.orphaned_queues(LANES, limit=100))
    assert [queue.key for queue in found.queues] == ["flowing"]
    # Along the index of those that wait, in pages of the order of the queues.
    assert read <= MOST


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(),
        EventFilter(key="dead 7"),
        EventFilter(event_type="order.placed"),
        EventFilter(state=EventState.BLOCKED),
    ],
    ids=["all", "key", "type", "blocked"],
)
async def test_a_page_of_events_reads_a_bounded_number_of_rows(store: Measured, wanted: EventFilter) -> None:
    read, page = await cost(store, store.admin.events.list(wanted, limit=PAGE))
    assert len(page.events) <= PAGE
    # A filter that no index answers scans a fixed number of rows of each table.
    most = MOST_OF_A_PAGE + 20 * ROWS_SCANNED * bool(wanted.asked)
    assert read <= most
    if page.after is not None:
        read, _ = await cost(store, store.admin.events.list(wanted, limit=PAGE, after=page.after))
        assert read <= most


async def test_one_event_is_found_by_an_index(store: Measured) -> None:
    for event_id in ("h77", "k77", "x77"):
        read, story = await cost(store, store.admin.events.show(event_id))
        assert len(story.events) == 1
        assert read <= 200


async def test_a_page_of_dead_letters_reads_about_a_page(store: Measured) -> None:
    for wanted in (DeadLetterFilter(), DeadLetterFilter(key="dead 7"), DeadLetterFilter(event_id="x77")):
        read, _ = await cost(store, store.admin.dead_letters.list(wanted, limit=PAGE))
        assert read <= MOST_OF_A_PAGE


async def test_the_overview_counts_up_to_its_limit(store: Measured) -> None:
    read, seen = await cost(store, store.admin.inspection.overview())
    assert seen.backlog >= 10_000
    assert read <= 100_000


async def test_a_list_of_consumers_reads_a_bounded_number_of_records(store: Measured) -> None:
    read, found = await cost(store, store.admin.inspection.consumers())
    assert [view.name for view in found] == ["consumer 0", "consumer 1", "consumer 2"]
    assert read <= 3 * 2 * 10_001 + MOST


async def test_expired_inbox_records_read_a_bounded_number_of_records(store: Measured) -> None:
    read, found = await cost(store, store.admin.archive.count_expired_inbox(0.0))
    assert sum(found.values()) == 10_001
    assert read <= 3 * 10_001 + MOST  # once in the index, and twice in the table that is grouped


async def test_blocked_keys_read_a_bounded_number_of_rows(store: Measured) -> None:
    read, _ = await cost(store, store.admin.keys.blocked())
    assert read <= 60_000


async def test_a_batch_of_a_replay_reads_a_bounded_number_of_rows(store: Measured) -> None:
    plan = Replay()
    read, chosen = await cost(store, store.admin.replays.chosen(plan, limit=PAGE, after=plan.start))
    assert len(chosen.rows) == PAGE
    assert read <= 4 * HISTORY_SCANNED


PLANNED = [
    # One key with many scheduled events of which one is due, recorded after those that are ready and wait.
    "INSERT INTO outbox_message (event_type, payload, ordering_key) SELECT 'ready', 'x', 'planned' FROM seq_1_to_100",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, destination) SELECT 'named', 'x', 'planned',"
    " 'orders' FROM seq_1_to_100",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, available_at)"
    " SELECT 'later', 'x', 'planned', utc_timestamp() + INTERVAL 1 DAY FROM seq_1_to_20000",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, available_at)"
    " VALUES ('due', 'x', 'planned', utc_timestamp() - INTERVAL 1 MINUTE)",
    "INSERT INTO outbox_message (event_type, payload, ordering_key) SELECT 'after', 'x', 'planned' FROM seq_1_to_100",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, held)"
    " SELECT 'waiting', 'x', 'planned', 'waiting' FROM seq_1_to_10",
    "ANALYZE TABLE outbox_message",
]


async def test_scheduled_events_of_a_key_cost_its_other_events_nothing(mariadb_url: str) -> None:
    async with Session(mariadb_url) as session:
        for statement in PLANNED:
            await session.execute(statement)
        due = await session.value("SELECT id FROM outbox_message WHERE event_type = 'due'")
    async with aclosing(Measured(mariadb_url)) as store:
        bounds = Bounds(limit=BATCH, quota=BATCH)
        read, found = await cost(store, store.messages.fetch(Ready(lanes=LANES, bounds=bounds)))
        waiting = {(message.event_type, message.must_wait) for message in found}
        assert waiting == {("ready", False), ("named", False), ("after", True)}
        assert read <= MOST + 16 * BATCH
        lane = found[0].lane
        for destination in ("", "orders"):
            queue = KeyQueue(lane, "planned", destination)
            read, following = await cost(store, store.messages.fetch(NextInQueues(queues=[queue], bounds=bounds)))
            assert following == []
            assert read <= MOST
            queries = [EarlierQuery(*queue, id) for id in (due, due + 1)]
            read, earlier = await cost(store, store.messages.earlier(queries))
            assert earlier[1]
            assert read <= MOST
        read, orphans = await cost(store, store.messages.orphaned_queues(LANES, limit=100))
        assert orphans.queues == []
        assert read <= MOST


DUE_OF_KEY = 3000
DUE_OF_OTHERS = 20_000
DESTINATIONS = 50
OVERDUE = [
    # One key with ready events, then many delayed events that are due, then ready ones. More are due of other keys.
    "INSERT INTO outbox_message (event_type, payload, ordering_key) SELECT 'ready', 'x', 'hot' FROM seq_1_to_20",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, destination) SELECT 'named', 'x', 'hot', 'orders'"
    " FROM seq_1_to_400",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, available_at) SELECT 'due', 'x', 'hot',"
    f" utc_timestamp() - INTERVAL seq MINUTE FROM seq_1_to_{DUE_OF_KEY}",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, destination) SELECT 'after', 'x', 'hot', 'orders'"
    " FROM seq_1_to_50",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, available_at) SELECT 'due', 'x',"
    f" concat('other ', seq % 200), utc_timestamp() - INTERVAL seq SECOND FROM seq_1_to_{DUE_OF_OTHERS}",
    # A delayed event for one destination.
    "INSERT INTO outbox_message (event_type, payload, ordering_key, destination, available_at)"
    " VALUES ('due', 'x', 'routed', 'orders', utc_timestamp() - INTERVAL 1 MINUTE)",
    "INSERT INTO outbox_message (event_type, payload, ordering_key, destination) VALUES"
    " ('unrouted', 'x', 'routed', ''), ('same', 'x', 'routed', 'orders'),"
    " ('another', 'x', 'routed', 'mail'), ('unordered', 'x', NULL, 'orders')",
    "ANALYZE TABLE outbox_message",
]
OVERDUE_QUEUES = (
    "INSERT INTO outbox_message (event_type, payload, ordering_key, destination, held) SELECT 'waiting', 'x', 'hot',"
    f" concat('queue ', seq), 'waiting' FROM seq_1_to_{DESTINATIONS}"
)


async def test_due_events_of_a_key_are_read_once_however_many_are_due(mariadb_url: str) -> None:
    async with Session(mariadb_url) as session:
        for statement in OVERDUE:
            await session.execute(statement)
        first_due = await session.value("SELECT min(id) FROM outbox_message WHERE event_type = 'due'")
    once = 4 * DUE_OF_KEY  # in the index, and in the table that is grouped
    async with aclosing(Measured(mariadb_url)) as store:
        bounds = Bounds(limit=BATCH, quota=BATCH)
        read, found = await cost(store, store.messages.fetch(Ready(lanes=LANES, bounds=bounds)))
        assert {(message.event_type, message.must_wait) for message in found} == {
            ("ready", False),
            ("named", False),
            ("after", True),
            ("unrouted", True),
            ("same", True),
            ("another", False),
            ("unordered", False),
        }
        assert read <= MOST + 16 * BATCH + once
        lane = await lane_of(store, "hot")
        read, due = await cost(store, store.messages.fetch(Due(lanes=[lane], bounds=bounds)))
        assert [message.must_wait for message in due] == [message.id > first_due for message in due]
        assert read <= MOST + 16 * BATCH + once
        async with Session(mariadb_url) as session:
            await session.execute(OVERDUE_QUEUES)
        queues = [KeyQueue(lane, "hot", f"queue {n}") for n in range(1, DESTINATIONS)] + [KeyQueue(lane, "hot", "")]
        read, following = await cost(store, store.messages.fetch(NextInQueues(queues=queues, bounds=bounds)))
        assert following == []
        assert read <= MOST + once
        queries = [EarlierQuery(*queue, id) for queue in queues for id in (first_due, first_due + 1)]
        read, earlier = await cost(store, store.messages.earlier(queries))
        assert earlier == [False, True] * DESTINATIONS
        assert read <= MOST + once
        read, orphans = await cost(store, store.messages.orphaned_queues(LANES, limit=100))
        assert orphans.queues == []
        assert read <= MOST + once


class TestWrites:
    """In the order in which they are written: each leaves fewer messages."""

    @pytest.fixture
    async def epochs(self, store: Measured) -> Epochs:
        await store.lanes.join(RelayRegistration(id="a"), lease=600)
        taken = await store.lanes.acquire("a", limit=64)
        if not taken:  # by the test before
            await store.lanes.release("a")
            await store.lanes.join(RelayRegistration(id="a"), lease=600)
            taken = await store.lanes.acquire("a", limit=64)
        return epochs_of(taken)

    async def fetched(self, store: Measured) -> list[Message]:
        return await store.messages.fetch(Ready(lanes=LANES, bounds=Bounds(limit=BATCH, quota=20)))

    @pytest.mark.parametrize(
        "outcome",
        [DELIVERED, Retry(delay=60, error="no"), Dead(error="no"), Dead(error="no", block=True)],
        ids=["delivered", "retry", "dead", "blocked"],
    )
    async def test_a_settlement_reads_the_rows_of_its_batch(
        self, store: Measured, epochs: Epochs, outcome: Outcome
    ) -> None:
        found = await self.fetched(store)
        decisions = [Decision(message, outcome, "mail") for message in found]
        read, settled = await cost(store, store.writes.settle(epochs, decisions))
        assert settled.count == BATCH
        assert read <= 32 * BATCH

    async def test_a_hold_a_split_and_a_counted_attempt_read_the_rows_of_their_batch(
        self, store: Measured, epochs: Epochs
    ) -> None:
        found = await self.fetched(store)
        resolved = [Resolved(message, "orders") for message in found]
        splits = [Split(message, ("orders", "copy")) for message in found]
        writes = store.writes
        for write in (
            partial(writes.count_attempt, epochs, resolved, error="no"),
            partial(writes.split, epochs, splits),
            partial(writes.hold, epochs, resolved, Held.PARKED),
        ):
            read, settled = await cost(store, write())
            assert settled.count == BATCH
            assert read <= 32 * BATCH
