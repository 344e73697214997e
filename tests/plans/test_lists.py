"""A page of a list reads at most a page of rows, or the limit of a scan, with full tables."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import ROWS_SCANNED, EventFilter
from pillarbox.admin.states import STORED, EventState
from pillarbox.core.message import Status
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from tests.plans.explain import Cost, Explainer
from tests.plans.test_reads_and_writes import STATEMENTS

LIMIT = 100
FIRST = (datetime.min.replace(tzinfo=UTC), 0, "")
# Each of the three tables brings a page and one row more; a partition of the history shows its first row besides.
ONE_PAGE = 4 * (LIMIT + 1) + 20
SCAN = 3 * ROWS_SCANNED + ONE_PAGE
INDEXED = [state for state in STORED if state is not EventState.BLOCKED]


class Listener:
    """Hears what the store sends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard: tuple[object, ...] = ()
        self.count = 0
        fetch = PostgresStoreConnection.fetch

        async def hearing(connection: PostgresStoreConnection, sql: str, *arguments: object) -> list[asyncpg.Record]:
            self.heard = (sql, *arguments)
            self.count += 1
            return await fetch(connection, sql, *arguments)

        monkeypatch.setattr(PostgresStoreConnection, "fetch", hearing)


@pytest.fixture
async def store(bad_day: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(bad_day)
    yield store
    await store.aclose()


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    return Listener(monkeypatch)


async def of_events(store: PostgresStore, listener: Listener, explain: Explainer, wanted: EventFilter) -> Cost:
    await store.admin.events.list(wanted, limit=LIMIT)
    sql, *arguments = listener.heard
    return await explain.cost(str(sql), *arguments)


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(),
        EventFilter(status=Status.PUBLISHED),
        EventFilter(status=Status.PUBLISHED, event_type="order.placed"),
        EventFilter(status=Status.PUBLISHED, event_type="rare"),
        EventFilter(status=Status.PUBLISHED, key="stuck"),
        EventFilter(status=Status.FAILED),
        EventFilter(state=EventState.BLOCKED),
        EventFilter(until=datetime(2100, 1, 1, tzinfo=UTC)),
    ],
    ids=repr,
)
async def test_a_page_that_an_index_selects(
    store: PostgresStore, listener: Listener, explain: Explainer, wanted: EventFilter
) -> None:
    cost = await of_events(store, listener, explain, wanted)
    assert cost.everywhere <= ONE_PAGE, cost
    assert cost.pages <= 8 * ONE_PAGE, cost


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(key="stuck"),
        EventFilter(key="unknown"),
        EventFilter(event_type="rare"),
        EventFilter(destination="nowhere"),
        *(EventFilter(state=state) for state in STORED),
        EventFilter(status=Status.PENDING),
        EventFilter(status=Status.PROCESSING),
        EventFilter(status=Status.FAILED, destination="nowhere"),
        EventFilter(aggregate="NOTHING:1"),
        EventFilter(error="no such error"),
    ],
    ids=repr,
)
async def test_a_page_without_a_matching_index_reads_a_bounded_number_of_rows(
    store: PostgresStore, listener: Listener, explain: Explainer, wanted: EventFilter
) -> None:
    cost = await of_events(store, listener, explain, wanted)
    assert cost.everywhere <= SCAN, cost


@pytest.mark.parametrize(
    ("wanted", "most"),
    [
        (EventFilter(), ONE_PAGE),
        (EventFilter(status=Status.PUBLISHED, event_type="order.placed"), ONE_PAGE),
        (EventFilter(status=Status.FAILED), ONE_PAGE),
        (EventFilter(event_type="rare"), SCAN),
        (EventFilter(destination="nowhere"), SCAN),
        (EventFilter(status=Status.PENDING), SCAN),
    ],
    ids=repr,
)
async def test_a_later_page_continues_where_a_million_rows_share_one_time(
    store: PostgresStore, listener: Listener, explain: Explainer, wanted: EventFilter, most: int
) -> None:
    page = await store.admin.events.list(wanted, limit=LIMIT)
    for _ in range(2):
        assert page.after is not None
        page = await store.admin.events.list(wanted, limit=LIMIT, after=page.after)
        sql, *arguments = listener.heard
        cost = await explain.cost(str(sql), *arguments)
        assert cost.everywhere <= most, cost


@pytest.mark.parametrize(
    ("wanted", "most"),
    [
        (DeadLetterFilter(), LIMIT + 1),
        (DeadLetterFilter(event_type="order.placed"), LIMIT + 1),
        (DeadLetterFilter(event_type="rare"), 0),
        (DeadLetterFilter(key="dead 7"), LIMIT + 1),
        (DeadLetterFilter(event_id="x7"), 1),
        (DeadLetterFilter(error="nothing of the kind"), ROWS_SCANNED),
        (DeadLetterFilter(destination="nowhere"), ROWS_SCANNED),
    ],
    ids=repr,
)
async def test_a_page_of_dead_letters(
    store: PostgresStore, listener: Listener, explain: Explainer, wanted: DeadLetterFilter, most: int
) -> None:
    await store.admin.dead_letters.list(wanted, limit=LIMIT)
    sql, *arguments = listener.heard
    cost = await explain.cost(str(sql), *arguments)
    assert cost.everywhere <= most, cost


async def test_dead_letters_by_their_numbers(explain: Explainer) -> None:
    cost = await explain.cost_of_named(
        STATEMENTS.get("dead_letter_details"), dead_letter_ids=list(range(1, 100 * LIMIT, 100))
    )
    assert (cost.returned, cost.everywhere) == (LIMIT, LIMIT), cost


async def test_all_of_one_event(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("show_event"), event_id="h7")
    assert cost.everywhere <= 10, cost


def counts(counted: int) -> dict[str, Any]:
    return {"counted": counted, "one_beyond_counted": counted + 1, "most": COUNTED, "beyond": COUNTED + 1}


@pytest.mark.parametrize("state", INDEXED)
async def test_a_state_with_few_messages_is_read_by_its_index(explain: Explainer, state: EventState) -> None:
    given: dict[str, Any] = dict.fromkeys(
        ("status", "type", "key", "destination", "aggregate_type", "aggregate_id", "error")
    )
    cost = await explain.cost_of_named(
        STATEMENTS.get("list_events", state),
        **given,
        recorded_at=datetime.max.replace(tzinfo=UTC),
        id=2**62,
        after_destination="",
        since=FIRST[0],
        state=state,
        beyond=COUNTED + 1,
        most=LIMIT + 1,
        waiting=LIMIT + 1,
        delivered=0,
        dead=0,
    )
    # Each state of this database has more messages than are counted: a state with fewer costs less.
    assert cost.everywhere <= 2 * (COUNTED + 1) + ONE_PAGE, cost


@pytest.mark.parametrize("state", INDEXED)
async def test_a_state_is_counted_along_its_index(explain: Explainer, state: EventState) -> None:
    variants = [] if state is EventState.READY else [state]
    cost = await explain.cost_of_named(STATEMENTS.get("count_state", *variants), beyond=COUNTED + 1)
    # Retries are found among the first messages of two indexes, for their number and to know whether these are all.
    assert cost.everywhere <= (COUNTED + 1) * (4 if state is EventState.RETRYING else 1), cost


async def test_the_counts_of_all_states_read_no_more_than_their_limits(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("count_states"), beyond=COUNTED + 1)
    assert cost.everywhere <= 11 * (COUNTED + 1), cost


async def test_destinations_are_grouped_from_a_limited_number_of_messages(explain: Explainer) -> None:
    given: dict[str, Any] = {"half": COUNTED // 2, "seconds": 300.0}
    cost = await explain.cost_of_named(STATEMENTS.get("pending_by_destination"), **given)
    assert cost.everywhere <= COUNTED, cost
    cost = await explain.cost_of_named(STATEMENTS.get("recent_deliveries"), **given)
    assert cost.everywhere <= COUNTED // 2 + 10, cost


async def test_an_overview_counts_no_more_than_its_limit(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("overview"), **counts(COUNTED))
    # What waits, dead letters, blocked keys, lanes and the first of each.
    assert cost.everywhere <= 3 * (COUNTED + 1) + 64 + 64, cost


async def test_a_higher_count_limit_reads_only_more_rows_of_the_count(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("overview"), **counts(5 * COUNTED))
    assert cost.everywhere <= 5 * COUNTED + 1 + 3 * (COUNTED + 1) + 64 + 64, cost


@pytest.mark.parametrize("after", [FIRST, None], ids=["the first", "a later one"])
async def test_a_batch_of_expired_history(
    store: PostgresStore, explain: Explainer, after: tuple[datetime, int, str] | None
) -> None:
    if after is None:
        [*_, last] = await store.admin.archive.read("history", older=0, limit=LIMIT)
        after = (last.recorded_at, last.id, last.destination)
    older = "UPDATE public.outbox_history SET published_at = now() - interval '10 days' WHERE id <= 20000"
    recorded_at, number, destination = after
    cost = await explain.cost_of_named(
        STATEMENTS.get("archive_read_history"),
        older=86400.0,
        limit=LIMIT,
        bytes=8 * 1024 * 1024,
        recorded_at=recorded_at,
        id=number,
        destination=destination,
        prepare=f"{older}; ANALYZE public.outbox_history",
    )
    assert cost.returned == LIMIT
    # Each row twice, for its size and in full; a partition shows its first row besides.
    assert cost.everywhere <= 2 * LIMIT + 5, cost


@pytest.mark.parametrize("limit", [1, 10, 500])
async def test_a_page_takes_one_statement_whatever_its_size(
    store: PostgresStore, listener: Listener, limit: int
) -> None:
    assert len((await store.admin.events.list(EventFilter(), limit=limit)).events) == limit
    assert len((await store.admin.dead_letters.list(DeadLetterFilter(), limit=limit)).dead_letters) == limit
    assert listener.count == 2
    await store.admin.events.show("h7")
    assert listener.count == 5
