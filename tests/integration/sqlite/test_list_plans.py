"""Plans of lists: each table is read along an index and never sorted as a whole."""

import re
import sqlite3

import pytest

from pillarbox.statements import Names
from pillarbox.stores.sqlite.statements import SqliteStatements

STATEMENTS = SqliteStatements(Names())
PAGE: dict[str, object] = {
    "recorded_at": "9999", "id": 1, "after_destination": "", "since": "0000", "status": None, "type": "t", "key": "k",
    "destination": None, "aggregate_type": None, "aggregate_id": None, "error": None, "state": None, "most": 51,
    "waiting": 51, "delivered": 51, "dead": 51, "beyond": 9,
}  # fmt: skip
DEAD_LETTERS: dict[str, object] = {
    "before": 9, "event_id": "e", "type": "t", "key": "k", "destination": None, "since": "0000", "error": None,
    "most": 51, "scan": 51,
}  # fmt: skip
REPLAY: dict[str, object] = {
    "recorded_at": "0000", "id": 1, "after_destination": "", "since": "0000", "until": "9999", "type": "t", "key": "k",
    "destination": None, "events": "[]", "to": None, "scan": 9, "most": 9,
}  # fmt: skip
OLD: dict[str, object] = {
    "older": 1,
    "limit": 9,
    "dead_letter_id": 0,
    "recorded_at": "0000",
    "id": 0,
    "destination": "",
    "bytes": 9,
}


def plan(db: sqlite3.Connection, sql: str, given: dict[str, object]) -> list[str]:
    return [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, given)]


def walks(steps: list[str]) -> set[str]:
    """The indexes used to read the tables of events; a table without one is named itself."""
    found = (re.match(r"(?:SEARCH|SCAN) m(?: .*?INDEX (\w+)|.*?(PRIMARY KEY)|)", step) for step in steps)
    return {hit[1] or hit[2] or "nothing" for hit in found if hit}


@pytest.mark.parametrize(
    ("variants", "indexes"),
    [
        ((), {"message_recorded", "history_recorded", "dead_letter_recorded"}),
        (("of_type",), {"message_recorded", "history_type", "dead_letter_recorded"}),
        (("of_key",), {"message_recorded", "history_key", "dead_letter_recorded"}),
        (("blocked",), {"message_blocked", "history_recorded", "dead_letter_recorded"}),
    ],
)
async def test_a_page_of_events(sql: sqlite3.Connection, variants: tuple[str, ...], indexes: set[str]) -> None:
    steps = plan(sql, STATEMENTS.get("list_events", *variants), PAGE)
    assert walks(steps) - {"nothing"} == {f"outbox_{name}_idx" for name in indexes}, steps
    # Each index scan is in order except for copies of one sequence number; only the merged rows are sorted.
    assert sum("OF ORDER BY" in step for step in steps) == 3, steps


@pytest.mark.parametrize(
    ("variants", "index"),
    [
        ((), "PRIMARY KEY"),
        (("of_type",), "outbox_dead_letter_type_idx"),
        (("of_key",), "outbox_dead_letter_key_idx"),
        (("of_event",), "outbox_dead_letter_event_id_idx"),
    ],
)
async def test_a_page_of_dead_letters(sql: sqlite3.Connection, variants: tuple[str, ...], index: str) -> None:
    steps = plan(sql, STATEMENTS.get("list_dead_letters", *variants), DEAD_LETTERS)
    assert index in walks(steps), steps


@pytest.mark.parametrize(
    ("variants", "walk"),
    [
        ((), "outbox_history_recorded_idx ((recorded_at,id)>(?,?) AND recorded_at<?)"),
        (("of_type",), "outbox_history_type_idx (event_type=? AND (recorded_at,id)>(?,?) AND recorded_at<?)"),
        (("of_key",), "outbox_history_key_idx (key=? AND (recorded_at,id)>(?,?) AND recorded_at<?)"),
        (("of_event",), "outbox_history_event_id_idx (event_id=?)"),
    ],
)
async def test_the_count_before_a_replay(sql: sqlite3.Connection, variants: tuple[str, ...], walk: str) -> None:
    steps = plan(sql, STATEMENTS.get("replay_count", *variants), REPLAY)
    assert any(step.startswith("SEARCH m ") and walk in step for step in steps), steps


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("archive_read_history", "outbox_history_recorded_idx"),
        ("archive_read_dead", "PRIMARY KEY"),
        ("show_event", "outbox_history_event_id_idx"),
        ("overview", "outbox_message_recorded_idx"),
        ("overview", "outbox_message_blocked_idx"),
        *(
            ("count_states", f"outbox_message_{name}_idx")
            for name in ("ready", "holding", "due", "delayed", "waiting", "parked", "blocked")
        ),
        ("pending_by_destination", "outbox_message_recorded_idx"),
        ("recent_deliveries", "outbox_history_recorded_idx"),
    ],
)
async def test_other_reads_use_an_index(sql: sqlite3.Connection, name: str, said: str) -> None:
    steps = plan(
        sql,
        STATEMENTS.get(name),
        OLD
        | {"event_id": "e", "counted": 9, "most": 9, "beyond": 10, "one_beyond_counted": 10, "half": 9, "seconds": 9},
    )
    assert any(said in step for step in steps), steps


@pytest.mark.parametrize(
    ("state", "indexes"),
    [
        ("ready", {"ready"}),
        ("retrying", {"holding", "due"}),
        ("delayed", {"delayed"}),
        ("waiting", {"waiting"}),
        ("parked", {"parked"}),
    ],
)
async def test_a_state_with_few_messages_is_read_by_its_index(
    sql: sqlite3.Connection, state: str, indexes: set[str]
) -> None:
    steps = plan(sql, STATEMENTS.get("list_events", state), PAGE)
    found = (re.match(r"(?:SCAN|SEARCH) p .*INDEX outbox_message_(\w+)_idx", step) for step in steps)
    assert {hit[1] for hit in found if hit} == indexes, steps


async def test_consumers_are_found_without_a_table_scan(sql: sqlite3.Connection) -> None:
    steps = plan(sql, STATEMENTS.get("list_consumers"), {"limit": 9, "most": 9, "lately": 9})
    assert [step for step in steps if step.startswith("SCAN") and "inbox" in step] == []
    assert [step for step in steps if re.match("SCAN [rt]( |$)", step)] == []
    assert sum("sqlite_autoindex_outbox_inbox_statistics_1 (consumer=? AND hour>?)" in step for step in steps) == 1, (
        steps
    )


async def test_blocked_keys_are_found_by_skip_scans(sql: sqlite3.Connection) -> None:
    steps = plan(sql, STATEMENTS.get("keys_blocked"), {"limit": 9, "most": 9, "beyond": 10, "queues": 9})
    scanned = {step for step in steps if re.match("SCAN (m|b|x|h|outbox_message)( |$)", step)}
    assert scanned == {"SCAN m USING INDEX outbox_message_blocked_idx"}, steps
    assert any("outbox_message_holding_idx (key=? AND destination=?)" in step for step in steps), steps
