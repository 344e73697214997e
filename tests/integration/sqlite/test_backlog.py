"""The size of a backlog beyond the count limit."""

import sqlite3

import pytest

from pillarbox.core.statistics import COUNTED
from pillarbox.stores.sqlite import SqliteStore

MANY = COUNTED + 500


@pytest.mark.parametrize(
    ("counted", "backlog", "exact"),
    [(COUNTED, COUNTED + 1, False), (MANY - 1, MANY, False), (MANY, MANY, True)],
)
async def test_the_backlog_is_counted_up_to_the_requested_limit(
    store: SqliteStore, sql: sqlite3.Connection, counted: int, backlog: int, exact: bool
) -> None:
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})"
    sql.execute(f"INSERT INTO outbox_message (event_type, payload) {numbers} SELECT 'a', '{{}}' FROM n")
    seen = await store.admin.inspection.overview(counted=counted)
    assert (seen.backlog, seen.exact) == (backlog, exact)
