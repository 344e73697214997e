"""What operators ask for reads a bounded number of rows, whatever lies in the tables."""

import pytest

from pillarbox.core.keys import BEHIND, SAMPLE
from tests.plans.explain import Explainer
from tests.plans.test_reads_and_writes import STATEMENTS

SOME = """
INSERT INTO public.outbox_stat (at, relay, destination, figures)
SELECT now() - g * interval '10 seconds', 'r' || g % 3, 'orders', '{}' FROM generate_series(1, 20000) g;
INSERT INTO public.outbox_audit (what, at)
SELECT 'retry', now() - (20000 - g) * interval '1 minute' FROM generate_series(1, 20000) g;
INSERT INTO public.processed_event (event_id, status, created_at)
SELECT 'p' || g, 'SUCCESS', now() - (20000 - g) * interval '1 minute' FROM generate_series(1, 20000) g;
UPDATE public.outbox_message SET held = 'blocked', available_at = NULL WHERE event_id = 'head';
ANALYZE public.outbox_stat, public.outbox_audit, public.processed_event;
"""


async def test_blocked_keys_count_a_bounded_number_behind_each(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("keys_blocked"), 100, BEHIND, prepare=SOME)
    assert cost.rows <= BEHIND + 10, cost
    assert cost.returned == 1


async def test_the_busiest_keys_are_those_of_a_sample(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("keys_hot"), 20, SAMPLE)
    assert cost.rows <= SAMPLE + 10, cost
    assert cost.returned > 0


async def test_an_hour_of_figures_reads_an_hour(explain: Explainer) -> None:
    cost = await explain.cost(STATEMENTS.get("stat_since"), 3600.0, 20_000, prepare=SOME)
    assert cost.everywhere <= 400, cost
    assert cost.returned >= 359


@pytest.mark.parametrize("statement", ["prune_ledger", "prune_audit", "prune_stats"])
async def test_where_nothing_is_old_next_to_nothing_is_looked_at(explain: Explainer, statement: str) -> None:
    cost = await explain.cost(STATEMENTS.get(statement), 1e9, 500, prepare=SOME)
    assert cost.everywhere <= 1_100, cost


@pytest.mark.parametrize("statement", ["prune_ledger", "prune_audit", "prune_stats"])
async def test_a_bite_looks_at_what_goes(explain: Explainer, statement: str) -> None:
    cost = await explain.cost(STATEMENTS.get(statement), 0.0, 500, prepare=SOME)
    assert cost.everywhere <= 2_000, cost
