"""A batch of a replay reads at most the limit of a scan, a page of the audit at most a page, with full tables."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.admin.audit import AuditFilter
from pillarbox.admin.listing import ROWS_SCANNED, EventFilter
from pillarbox.admin.replay import HISTORY_SCANNED, DeliveryPosition, Replay
from pillarbox.ops import replay_runs
from pillarbox.stores.postgres import PostgresStore
from tests.plans.explain import Cost, Explainer
from tests.plans.test_lists import Listener
from tests.plans.test_statement_counts import Counter

BATCH = 100
# A matching row is read itself, in the search for an earlier delivery, and a few ahead; a partition reads its first.
ONE_BATCH = 4 * (BATCH + 1)
LATER, EARLIER = datetime.now(UTC) + timedelta(days=1), datetime.now(UTC) - timedelta(days=1)
NOWHERE = Replay(wanted=EventFilter(destination="nowhere"))


@pytest.fixture
async def store(bad_day: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(bad_day)
    yield store
    await store.aclose()


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    return Listener(monkeypatch)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


async def cost_of(store: PostgresStore, listener: Listener, explain: Explainer, plan: Replay) -> AsyncIterator[Cost]:
    """Of the first batch and of a later one."""
    after: DeliveryPosition | None = plan.start
    for _ in range(2):
        if after is not None:
            _, after = await store.admin.replays.chosen(plan, limit=BATCH, after=after)
            sql, *arguments = listener.heard
            yield await explain.cost(str(sql), *arguments)


@pytest.mark.parametrize(
    "plan",
    [
        Replay(),
        Replay(to="audit"),
        Replay(wanted=EventFilter(event_type="order.placed")),
        Replay(wanted=EventFilter(destination="orders")),
        Replay(wanted=EventFilter(key="unknown")),
        Replay(event_ids=("h7", "h8", "unknown")),
        Replay(wanted=EventFilter(since=LATER)),
    ],
    ids=["all", "to one", "type", "destination", "key", "ids", "since"],
)
async def test_a_batch_that_an_index_selects(
    store: PostgresStore, listener: Listener, explain: Explainer, plan: Replay
) -> None:
    async for cost in cost_of(store, listener, explain, plan):
        assert cost.everywhere <= ONE_BATCH, cost


@pytest.mark.parametrize(
    "plan",
    [Replay(wanted=EventFilter(event_type="rare")), NOWHERE],
    ids=["type", "destination"],
)
async def test_a_batch_without_a_matching_index_reads_a_bounded_number_of_rows(
    store: PostgresStore, listener: Listener, explain: Explainer, plan: Replay
) -> None:
    async for cost in cost_of(store, listener, explain, plan):
        assert cost.everywhere <= HISTORY_SCANNED + ONE_BATCH, cost


@pytest.mark.parametrize(
    "plan",
    [
        Replay(wanted=EventFilter(event_type="rare")),
        Replay(wanted=EventFilter(event_type="rare", destination="orders")),
        Replay(wanted=EventFilter(key="unknown")),
        Replay(event_ids=("unknown",)),
        Replay(wanted=EventFilter(since=LATER)),
        Replay(until=EARLIER),
    ],
    ids=["type", "type and destination", "key", "id", "since", "until"],
)
async def test_a_full_budget_is_detected_without_a_read(
    store: PostgresStore, listener: Listener, explain: Explainer, plan: Replay
) -> None:
    assert await store.admin.replays.count(plan, enough=BATCH, scan=HISTORY_SCANNED) == (0, None)
    sql, *arguments = listener.heard
    assert (await explain.cost(str(sql), *arguments)).everywhere == 0


@pytest.mark.parametrize(
    ("plan", "most"),
    [
        (Replay(), ONE_BATCH),
        (Replay(wanted=EventFilter(event_type="order.placed")), ONE_BATCH),
        (NOWHERE, HISTORY_SCANNED + 20),
    ],
    ids=["all", "type", "destination"],
)
async def test_a_count_ends_after_its_scan_or_at_its_limit(
    store: PostgresStore, listener: Listener, explain: Explainer, plan: Replay, most: int
) -> None:
    _, later = await store.admin.replays.count(NOWHERE, enough=BATCH, scan=HISTORY_SCANNED)
    assert later is not None
    for after in (None, later):
        await store.admin.replays.count(plan, enough=BATCH, scan=HISTORY_SCANNED, after=after)
        sql, *arguments = listener.heard
        cost = await explain.cost(str(sql), *arguments)
        assert cost.everywhere <= most, cost


@pytest.mark.parametrize(
    ("wanted", "most"), [(AuditFilter(), BATCH + 1), (AuditFilter(who="unknown"), ROWS_SCANNED)], ids=repr
)
async def test_a_page_of_the_audit(
    store: PostgresStore, listener: Listener, explain: Explainer, wanted: AuditFilter, most: int
) -> None:
    await store.admin.audit.list(wanted, limit=BATCH)
    sql, *arguments = listener.heard
    entries = "INSERT INTO public.outbox_audit (who, what) SELECT 'ada', 'retry' FROM generate_series(1, 20000)"
    cost = await explain.cost(str(sql), *arguments, prepare=f"{entries}; ANALYZE public.outbox_audit")
    assert cost.everywhere <= most, cost


@pytest.mark.parametrize("events", [1, 10, 500])
async def test_a_replay_takes_four_statements_a_batch_whatever_its_size(
    postgres_url: str, counter: Counter, events: int
) -> None:
    store = PostgresStore(postgres_url)
    async with store._connections[0].open() as sql:
        await sql.execute(
            "INSERT INTO public.outbox_history (id, event_id, destination, event_type, payload, content_type, headers,"
            " schema_version, occurred_at, recorded_at, attempts, deferrals, published_at)"
            " SELECT g, 'h' || g, 'orders', 'order.placed', 'x', 'application/json', '{}', 1, now(), now(), 0, 0, now()"
            f" FROM generate_series(1, {events}) g"
        )
    # Find, lock, copy and store the position; one more enters the replay in the audit.
    with counter.expecting(5):
        done = await replay_runs.run(store, Replay(), by="")
    assert done.copied == events
    await store.aclose()
