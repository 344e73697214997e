"""A query of operators reads a bounded number of rows, regardless of the content of the tables."""

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from pillarbox.admin.keys import NEXT_SCANNED, QUEUES_SCANNED, SAMPLED, WAITING_COUNTED
from tests.plans.explain import Explainer
from tests.plans.test_reads_and_writes import LANES, STATEMENTS

SOME = """
INSERT INTO public.outbox_sample (at, relay, destination, statistics)
SELECT now() - g * interval '10 seconds', 'r' || g % 3, 'orders', '{}' FROM generate_series(1, 20000) g;
INSERT INTO public.outbox_audit (what, at)
SELECT 'retry', now() - (20000 - g) * interval '1 minute' FROM generate_series(1, 20000) g;
INSERT INTO public.outbox_ledger (event_id, status, created_at)
SELECT 'p' || g, 'SUCCESS', now() - (20000 - g) * interval '1 minute' FROM generate_series(1, 20000) g;
INSERT INTO public.outbox_inbox (consumer, event_id)
SELECT 'c' || g % 10, 'e' || g FROM generate_series(1, 20000) g;
INSERT INTO public.outbox_inbox_statistics (consumer, hour, processed)
SELECT 'c' || g % 12, date_trunc('hour', now()) - g / 12 * interval '1 hour', 1 FROM generate_series(0, 23999) g;
UPDATE public.outbox_message SET held = 'blocked', available_at = NULL WHERE event_id = 'head';
ANALYZE public.outbox_sample, public.outbox_audit, public.outbox_ledger;
ANALYZE public.outbox_inbox, public.outbox_inbox_statistics;
"""

ASKED = """
INSERT INTO public.outbox_request (action, event_id, destination)
SELECT 'retry', 'r' || g, 'orders' FROM generate_series(1, 20000) g;
ANALYZE public.outbox_request;
"""


async def test_a_batch_of_operator_requests_does_not_read_the_rest(explain: Explainer) -> None:
    sql, batch = STATEMENTS.get("execute_requests"), 500
    cost = await explain.cost(sql, LANES, [0] * len(LANES), batch, [], [], prepare=ASKED)
    assert f"Index Scan outbox_request_open_idx rows={batch} " in cost.plan, cost
    # Once to see whose they are, once to send them again.
    assert cost.rows == 2 * batch, cost


async def test_the_requests_for_one_event_are_found_among_all_open_ones(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("show_requests"), event_id="r7", prepare=ASKED)
    assert "outbox_request_event_idx" in cost.plan, cost
    assert (cost.everywhere, cost.returned) == (1, 1), cost


BLOCKED: dict[str, Any] = {
    "limit": 100,
    "most": WAITING_COUNTED,
    "beyond": WAITING_COUNTED + 1,
    "queues": QUEUES_SCANNED,
}


async def test_blocked_keys_count_a_bounded_number_behind_each(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("keys_blocked"), **BLOCKED, prepare=SOME)
    assert cost.rows <= WAITING_COUNTED + 10, cost
    assert cost.returned == 1


async def test_keys_whose_first_event_waits_for_a_retry_do_so_too(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("keys_blocked"), **BLOCKED)
    assert cost.rows <= WAITING_COUNTED + 10, cost
    assert cost.returned == 1


MANY_LINES = """
INSERT INTO public.outbox_message (event_id, destination, event_type, payload, ordering_key, available_at, attempts)
SELECT 'm' || g, 'orders', 'order.placed', 'x', 'many ' || g, now() + interval '1 hour', 1
FROM generate_series(1, 5000) g;
INSERT INTO public.outbox_message (event_id, destination, event_type, payload, ordering_key, held)
SELECT 'n' || g, 'orders', 'order.placed', 'x', 'many ' || g, 'waiting' FROM generate_series(1, 5000) g;
"""


async def test_a_bounded_number_of_thousands_of_waiting_keys_is_read(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("keys_blocked"), **BLOCKED, prepare=MANY_LINES)
    # Each queue, its first event, and the waiting events of those that are shown.
    assert cost.rows <= 2 * QUEUES_SCANNED + 100 + 2 * WAITING_COUNTED + 10, cost
    assert cost.returned == 100


async def test_the_busiest_keys_are_those_of_a_sample(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("keys_busiest"), limit=20, most=SAMPLED)
    assert cost.rows <= SAMPLED + 10, cost
    assert cost.returned > 0


BATCH = 100
DEAD_LETTERS: dict[str, object] = {"dead_letter_ids": list(range(1, 100 * BATCH, 100))}
HISTORY = range(7, 7 + BATCH)
DELIVERIES: dict[str, object] = {
    "event_ids": [f"h{number}" for number in HISTORY],
    "ids": list(HISTORY),
    "destinations": ["orders"] * BATCH,
}
LEDGER = """
INSERT INTO public.outbox_ledger (event_id, destination, status)
SELECT 'h' || g, 'orders', 'SUCCESS' FROM generate_series(1, 50000) g;
ANALYZE public.outbox_ledger;
"""


@pytest.mark.parametrize(
    ("statement", "given", "returned"),
    [
        ("lock_dead_letters", DEAD_LETTERS, BATCH),
        ("requeue_dead_letters", DEAD_LETTERS, BATCH),
        ("audit_dead_letters", DEAD_LETTERS | {"what": "retry", "by": "ada"}, 0),
        ("delete_dead_letters", DEAD_LETTERS, BATCH),
        ("reopen_ledger", {"event_ids": DELIVERIES["event_ids"], "destinations": DELIVERIES["destinations"]}, 0),
        ("archive_delete_history", DELIVERIES, BATCH),
        ("replay_copy", DELIVERIES | {"copy_ids": [f"copy {number}" for number in HISTORY], "to": None}, BATCH),
    ],
)
async def test_a_write_reads_the_rows_of_its_batch(
    explain: Explainer, bad_day: str, statement: str, given: dict[str, object], returned: int
) -> None:
    connection = await asyncpg.connect(bad_day)
    delivered_at = await connection.fetchval("SELECT published_at FROM outbox_history LIMIT 1")
    await connection.close()
    cost = await explain.cost_of_named(STATEMENTS.get(statement), times=[delivered_at] * BATCH, prepare=LEDGER, **given)
    # A partition of the history shows its first row besides.
    assert cost.everywhere <= BATCH + 5, cost
    assert cost.returned == returned


async def test_old_dead_letters_are_read_once_for_their_size_and_once_in_full(explain: Explainer) -> None:
    cost = await explain.cost_of_named(
        STATEMENTS.get("archive_read_dead"), older=0.0, limit=BATCH, bytes=8 * 1024 * 1024, dead_letter_id=50_000
    )
    assert (cost.returned, cost.everywhere) == (BATCH, 2 * BATCH), cost


async def test_rows_past_their_retention_are_counted_up_to_a_limit(explain: Explainer) -> None:
    ages = dict.fromkeys(("history", "dead", "inbox", "ledger", "audit"), 0.0)
    cost = await explain.cost_of_named(STATEMENTS.get("archive_count"), most=BATCH, prepare=SOME, **ages)
    assert cost.everywhere <= len(ages) * BATCH, cost


async def test_expired_inbox_records_are_counted_up_to_a_limit(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("expired_inbox_records"), most=BATCH, prepare=SOME, inbox=0.0)
    assert cost.everywhere <= BATCH, cost


@pytest.mark.parametrize(("destination", "found"), [("orders", 6), ("", 1)])
async def test_the_event_that_a_waiting_event_waits_for_is_found_past_all_in_between(
    explain: Explainer, bad_day: str, destination: str, found: int
) -> None:
    connection = await asyncpg.connect(bad_day)
    place = await connection.fetchval("SELECT id FROM outbox_message WHERE event_id = 'b50000'")
    await connection.close()
    cost = await explain.cost_of_named(
        STATEMENTS.get("keys_queue"),
        key="stuck",
        recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
        id=place,
        destination=destination,
        limit=5,
        scan=NEXT_SCANNED,
    )
    # Events that were not fetched yet may be scanned without a match; the first and the next few are found at once.
    assert cost.rows <= NEXT_SCANNED + 50, cost
    assert cost.returned == found


async def test_an_hour_of_samples_reads_an_hour(explain: Explainer) -> None:
    cost = await explain.cost_of_named(STATEMENTS.get("statistics_since"), seconds=3600.0, most=20_000, prepare=SOME)
    assert cost.everywhere <= 400, cost
    assert cost.returned >= 359


async def test_a_list_of_consumers_reads_their_names_a_bounded_count_and_a_day_of_statistics(
    explain: Explainer,
) -> None:
    cost = await explain.cost_of_named(
        STATEMENTS.get("list_consumers"), limit=100, most=51, lately=86_400.0, prepare=SOME
    )
    assert cost.returned == 12
    assert cost.everywhere <= 10 * 51 + 12 * 24 + 2 * 13, cost


@pytest.mark.parametrize("statement", ["prune_ledger", "prune_audit", "prune_statistics", "prune_consumer_statistics"])
async def test_without_expired_rows_almost_nothing_is_read(explain: Explainer, statement: str) -> None:
    cost = await explain.cost(STATEMENTS.get(statement), 1e9, 500, prepare=SOME)
    assert cost.everywhere <= 1_100, cost


@pytest.mark.parametrize("statement", ["prune_ledger", "prune_audit", "prune_statistics", "prune_consumer_statistics"])
async def test_a_batch_reads_only_expired_rows(explain: Explainer, statement: str) -> None:
    cost = await explain.cost(STATEMENTS.get(statement), 0.0, 500, prepare=SOME)
    assert cost.everywhere <= 2_000, cost
