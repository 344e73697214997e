"""Query plans: reads and writes use their indexes, and no statement scans the message table."""

import re
import sqlite3

import pytest

from pillarbox.statements import Names
from pillarbox.stores.splitting import split_statements
from pillarbox.stores.sqlite.statements import SqliteStatements

STATEMENTS = SqliteStatements(Names())
Given = dict[str, object]
LOOK: Given = {"limit": 500, "quota": 500, "in_flight": "[]", "unrouted": "[]"}

HOLD_BACK = {
    "outbox_message_waiting_idx",
    "outbox_message_holding_idx",
    "outbox_message_delayed_idx",
    "outbox_message_due_idx",
}

READS: dict[str, tuple[Given, set[str]]] = {
    "pick_ready": (LOOK, {"outbox_message_ready_idx"}),
    "pick_due": (LOOK, {"outbox_message_due_idx"}),
    "pick_parked": (LOOK | {"destinations": '["x"]'}, {"outbox_message_parked_idx"}),
    "pick_waiting": (
        LOOK | {"queues": '[["k", "x"]]'},
        {"outbox_message_waiting_idx", "outbox_message_holding_idx", "outbox_message_delayed_idx"},
    ),
    "has_earlier": ({"queries": '[["k", "x", 5]]'}, HOLD_BACK),
    "fetch_rows": ({"rows": "[1]", "check_order": True}, HOLD_BACK),
    "find_orphaned_queues": (
        {"key": "k", "destination": "x", "limit": 5},
        {"outbox_message_waiting_idx", "outbox_message_holding_idx", "outbox_message_delayed_idx"},
    ),
}
WRITES: dict[str, Given] = {
    "fill_settlement": {"messages": "[]"},
    "remove_delivered": {"delivered": "{}", "epoch": 1},
    "set_destination": {},
    "find_duplicates": {},
    "add_attempts": {},
    "deliver": {},
    "dead_letter": {},
    "remove_settled": {},
    "requeue": {},
    "hold": {"held": "parked"},
    "count_attempt": {"counted": 0, "counted_before_send": 0, "error": ""},
    "split_copy": {},
    "split_replace": {},
    "open_requests": {"limit": 5},
    "lock_dead_letters": {"dead_letter_ids": "[]"},
    "requeue_dead_letters": {"dead_letter_ids": "[]"},
    "reopen_ledger": {"event_ids": "[]", "destinations": "[]"},
    "audit_dead_letters": {"dead_letter_ids": "[]", "what": "", "by": ""},
    "delete_dead_letters": {"dead_letter_ids": "[]"},
    "replay_copy": {"event_ids": "[]", "ids": "[]", "destinations": "[]", "times": "[]", "copy_ids": "[]", "to": ""},
    "archive_delete_history": {"event_ids": "[]", "ids": "[]", "destinations": "[]", "times": "[]"},
    "show_event": {"event_id": "a"},
    "prune_history": {"seconds": 1, "most": 5},
    "prune_dead": {"seconds": 1, "most": 5},
    "prune_attempts": {"seconds": 1, "most": 5},
    "prune_consumer_statistics": {"seconds": 1, "most": 5},
}
SMALL = {
    "temp.settlement",
    "picked",
    "asked",
    "asked_key",
    "due",
    "due_of_key",
    "d",
    "g",
    "l",
    "n",
    "s",
    "r",
    "v",
    "line",
    "outbox_event",
    "sqlite_sequence",
    "CONSTANT",
}
SMALL |= {f"{name} VIRTUAL" for name in ("b", "d", "e", "h", "i", "k", "s", "w", "json_each")}


@pytest.fixture
def planner(sql: sqlite3.Connection) -> sqlite3.Connection:
    for statement in split_statements(STATEMENTS.script("connection_settings")):
        sql.execute(statement)
    return sql


def _plan(db: sqlite3.Connection, name: str, given: Given) -> list[str]:
    return _plan_of(db, STATEMENTS.get(name), given)


def _plan_of(db: sqlite3.Connection, statement: str, given: Given) -> list[str]:
    return [
        row[3] for one in split_statements(f"{statement};") for row in db.execute("EXPLAIN QUERY PLAN " + one, given)
    ]


def _scanned(plan: list[str]) -> set[str]:
    # Scans of subqueries are listed separately; of w, in any_holds_back, only the first entry is read.
    scans = (
        re.match(r"SCAN (?!\(subquery-|w )(\S+(?: VIRTUAL)?)(?! USING INDEX outbox_message_ready_idx)(?= |$)", step)
        for step in plan
    )
    return {found[1] for found in scans if found}


@pytest.mark.parametrize("name", READS)
async def test_a_fetch_uses_its_indexes_and_scans_no_large_table(planner: sqlite3.Connection, name: str) -> None:
    given, indexes = READS[name]
    plan = _plan(planner, name, given)
    assert {found for step in plan for found in re.findall(r"outbox_message_\w+_idx", step)} == indexes
    assert _scanned(plan) <= SMALL, plan


@pytest.mark.parametrize("name", ["ready", "due", "parked", "waiting"])
async def test_a_single_statement_fetch_uses_the_same_indexes(planner: sqlite3.Connection, name: str) -> None:
    given, indexes = READS[f"pick_{name}"]
    plan = _plan(planner, f"fetch_{name}", given | {"check_order": True, "most": 1})
    assert {found for step in plan for found in re.findall(r"outbox_message_\w+_idx", step)} == indexes | HOLD_BACK
    assert _scanned(plan) <= SMALL, plan


async def test_the_check_for_waiting_messages_reads_three_index_entries(planner: sqlite3.Connection) -> None:
    probes = [step for step in _plan_of(planner, STATEMENTS.render("{any_holds_back}"), {}) if " w " in step]
    assert [re.sub(r" \(.*", "", step) for step in probes] == [
        "SCAN w USING INDEX outbox_message_holding_idx",
        "SCAN w USING INDEX outbox_message_waiting_idx",
        "SEARCH w USING INDEX outbox_message_due_idx",
    ]


@pytest.mark.parametrize("name", ["pick_ready", "pick_due"])
async def test_hot_fetches_need_no_sorting(planner: sqlite3.Connection, name: str) -> None:
    assert not [step for step in _plan(planner, name, READS[name][0]) if "TEMP B-TREE" in step]


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_scans_no_large_table(planner: sqlite3.Connection, name: str) -> None:
    plan = _plan(planner, name, WRITES[name])
    assert _scanned(plan) <= SMALL, plan


@pytest.mark.parametrize("name", ["deliver", "ledger_settle"])
async def test_history_rows_are_written_by_rowid(planner: sqlite3.Connection, name: str) -> None:
    plan = _plan_of(planner, STATEMENTS.get(name, "at_once"), WRITES["remove_delivered"])
    assert _scanned(plan) <= SMALL, plan


async def test_ordering_queues_are_skipped_by_index_seeks(planner: sqlite3.Connection) -> None:
    plan = _plan(planner, "find_orphaned_queues", READS["find_orphaned_queues"][0])
    hops = [step for step in plan if step.startswith("SEARCH x")]
    assert all(re.search(r"\((key>\?|key=\? AND destination>\?)\)", step) for step in hops), hops
