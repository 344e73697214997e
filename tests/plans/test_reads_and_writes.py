"""A fetch or a write reads about its batch: at most twice its rows, and their pages, whatever the tables contain."""

from contextlib import aclosing

import asyncpg
import pytest

from pillarbox.statements import Names
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.messages import _by_destination
from pillarbox.stores.postgres.statements import PostgresStatements
from tests.plans.conftest import HOT_KEYS
from tests.plans.explain import Explainer

BATCH = 500
LANES = list(range(64))
# Twice the batch, and the few probes that each lane always costs.
MOST_ROWS = 2 * BATCH + 4 * len(LANES)
# A page or so of index and one of table for each row read, some levels of index above.
MOST_PAGES = 8 * MOST_ROWS
BYTES = [8 * 1024 * 1024, 1 << 62]

STATEMENTS = PostgresStatements(Names(schema="public"))


@pytest.fixture
async def flowing_lane(bad_day: str) -> int:
    return await _lane(bad_day, "flowing")


async def _lane(url: str, key: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        lane: int = await connection.fetchval("SELECT lane FROM outbox_message WHERE key = $1 LIMIT 1", key)
        return lane
    finally:
        await connection.close()


async def _places(url: str, events: list[str]) -> list[int]:
    """The places of events for "orders", in their order; 0 where there is none."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT coalesce(m.id, 0) AS id FROM unnest($1::text[]) WITH ORDINALITY AS e(event_id, n)"
            " LEFT JOIN outbox_message m ON m.event_id = e.event_id AND m.destination = 'orders' ORDER BY e.n",
            events,
        )
        return [row["id"] for row in rows]
    finally:
        await connection.close()


async def in_flight(url: str, most: int) -> tuple[list[str], list[str]]:
    """The messages in flight of a relay that fetches three batches ahead, as parameters of its fetches."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT id, destination FROM outbox_message WHERE held IS NULL AND available_at IS NULL"
            " ORDER BY id LIMIT $1",
            most,
        )
        found = _by_destination([(row["id"], row["destination"]) for row in rows])
        return list(found.values()), list(found)
    finally:
        await connection.close()


async def test_a_fetch_of_ready_messages(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("fetch_ready"), LANES, 2 * BATCH // HOT_KEYS, BATCH, *BYTES, [], [])
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= MOST_PAGES, cost


async def test_a_fetch_from_low_water_marks(explain: Explainer, bad_day: str) -> None:
    async with aclosing(PostgresStore(bad_day)) as store:
        await store.messages.low_water_marks.search(LANES)
        known = await store.messages.low_water_marks.known(LANES)
    assert known is not None
    fetch = STATEMENTS.get("fetch_ready", "from_low_water_marks")
    cost = await explain.cost(fetch, LANES, 2 * BATCH // HOT_KEYS, BATCH, *BYTES, [], [], *known)
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= MOST_PAGES, cost


async def test_a_search_for_low_water_marks(explain: Explainer) -> None:
    ends = [1 << 62] * len(LANES)
    cost = await explain.cost(STATEMENTS.get("find_low_water_marks"), LANES, [1] * len(LANES), ends)
    assert cost.returned == len(LANES)
    assert cost.rows <= len(LANES), cost


async def test_a_fetch_ahead_with_1500_in_flight(explain: Explainer, bad_day: str) -> None:
    ids, destinations = await in_flight(bad_day, 3 * BATCH)
    cost = await explain.cost(
        STATEMENTS.get("fetch_ready"), LANES, 2 * BATCH // HOT_KEYS, BATCH, *BYTES, ids, destinations
    )
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS + 3 * BATCH, cost
    assert cost.pages <= MOST_PAGES + 3 * BATCH, cost


async def test_a_fetch_of_one_lane_whose_key_is_blocked(explain: Explainer, bad_day: str) -> None:
    lane = await _lane(bad_day, "stuck")
    cost = await explain.cost(STATEMENTS.get("fetch_ready"), [lane], BATCH, BATCH, *BYTES, [], [])
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost


@pytest.mark.parametrize("destination", ["", "orders"])
async def test_a_fetch_of_a_key_of_which_many_later_events_are_due(
    explain: Explainer, bad_day: str, destination: str
) -> None:
    """Each message reads a few of them, and all together read every one once."""
    due = 10 * BATCH
    lane = await _lane(bad_day, "hot 1")
    prepare = f"""
        INSERT INTO public.outbox_message (event_id, destination, event_type, payload, ordering_key, available_at)
        SELECT 'due ' || g, '{destination}', 'order.placed', 'x', 'hot 1', now() - interval '1 minute'
        FROM generate_series(1, {due}) g
    """
    fetch = STATEMENTS.get("fetch_ready")
    cost = await explain.cost(fetch, [lane], BATCH, BATCH, *BYTES, [], [], prepare=prepare)
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS + due + 21 * BATCH, cost


async def test_a_fetch_of_due_messages(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("fetch_due"), LANES, BATCH // 50, BATCH, *BYTES, [], [])
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= MOST_PAGES, cost


async def test_a_fetch_of_parked_messages(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("fetch_parked"), LANES, BATCH // 50, BATCH, *BYTES, [], [], ["closed"])
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= MOST_PAGES, cost


async def test_a_query_for_destinations_with_parked_messages(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("parked_destinations"), LANES)
    assert cost.returned == 1
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= MOST_PAGES, cost


async def test_a_fetch_from_a_queue_of_100000(explain: Explainer, flowing_lane: int) -> None:
    cost = await explain.cost(
        STATEMENTS.get("fetch_waiting"), [flowing_lane], BATCH, BATCH, *BYTES, [], [], ["flowing"], ["orders"]
    )
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= MOST_PAGES, cost


async def test_fetching_more_of_a_queue_whose_first_event_waits(explain: Explainer, bad_day: str) -> None:
    lane = await _lane(bad_day, "stuck")
    cost = await explain.cost(
        STATEMENTS.get("fetch_waiting"), [lane], BATCH, BATCH, *BYTES, [], [], ["stuck"], ["orders"]
    )
    assert cost.returned == 0
    assert cost.rows <= 10, cost


async def test_a_query_for_earlier_messages_of_a_blocked_key(explain: Explainer, bad_day: str) -> None:
    lane = await _lane(bad_day, "stuck")
    last = 2**60
    cost = await explain.cost(
        STATEMENTS.get("has_earlier"), [lane] * BATCH, ["stuck"] * BATCH, ["orders"] * BATCH, [last] * BATCH
    )
    assert cost.returned == BATCH
    assert cost.rows <= MOST_ROWS, cost


async def test_finding_orphaned_queues(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("find_orphaned_queues"), LANES, -1, "", "", BATCH)
    assert cost.returned == 2, cost
    assert cost.rows <= 4 * len(LANES), cost


async def test_settling_delivered_messages(explain: Explainer, bad_day: str) -> None:
    events = [f"k{number}" for number in range(1, BATCH + 1)]
    destinations = ["orders"] * BATCH
    epochs = [0] * len(LANES)
    cost = await explain.cost(
        STATEMENTS.get("deliver"),
        LANES,
        epochs,
        events,
        destinations,
        await _places(bad_day, events),
        destinations,
        [0.25] * BATCH,
    )
    assert cost.rows <= MOST_ROWS, cost
    assert cost.pages <= 4 * MOST_PAGES, cost


async def test_settling_retries(explain: Explainer, bad_day: str) -> None:
    n = BATCH
    events = [f"k{number}" for number in range(1, n + 1)]
    cost = await explain.cost(
        STATEMENTS.get("requeue", "settled"),
        LANES,
        [0] * len(LANES),
        events,
        ["orders"] * n,
        await _places(bad_day, events),
        ["orders"] * n,
        [None] * n,
        [10.0] * n,
        [1] * n,
        [0] * n,
        ["refused"] * n,
        [False] * n,
        [0] * n,
        [0] * n,
        [True] * n,
        [0.25] * n,
    )
    assert cost.returned == 1
    assert cost.rows <= MOST_ROWS, cost


async def test_settling_dead_letters(explain: Explainer, bad_day: str) -> None:
    n = BATCH
    events = [f"k{number}" for number in range(1, n + 1)]
    cost = await explain.cost(
        STATEMENTS.get("dead_letter"),
        LANES,
        [0] * len(LANES),
        events,
        ["orders"] * n,
        await _places(bad_day, events),
        ["orders"] * n,
        [1] * n,
        ["refused"] * n,
        [True] * n,
        [0.25] * n,
    )
    assert cost.rows <= MOST_ROWS, cost


async def test_a_query_of_the_history_for_a_batch(explain: Explainer) -> None:
    asked = [f"{'h' if number % 2 else 'new'}{number}" for number in range(1, BATCH + 1)]
    cost = await explain.cost(STATEMENTS.get("ledger_history"), asked)
    assert cost.returned == BATCH // 2
    assert cost.everywhere <= BATCH, cost
    assert cost.pages <= MOST_PAGES, cost
