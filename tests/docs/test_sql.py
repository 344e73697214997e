"""What the reference says about SQL is so: columns, the queries it shows, the names that others know."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pillarbox import Event, Outbox
from pillarbox.core.outcome import DELIVERED, Dead
from pillarbox.stores.mariadb.wakeup import FIRST_POLL, LONGEST_POLL
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner
from tests.docs.pages import ROOT, blocks

SCHEMA = ROOT / "docs/reference/schema.md"
NAMES = (ROOT / "docs/contributing/source-names.md").read_text(encoding="utf-8")
VIEWS = ("outbox_event", "outbox_events", "event_outbox", "event_outbox_dlq", "outbox_integration_event")
QUERIES = [line for block in blocks(SCHEMA, "sql") for line in block.splitlines()]


@pytest.mark.parametrize("page", ["docs/how-to/plain-sql-producers.md", "docs/reference/mariadb.md"])
def test_a_page_says_how_often_an_idle_relay_polls_mariadb(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"every {FIRST_POLL * 1000:.0f} to {LONGEST_POLL * 1000:.0f} ms" in text
    assert "MariaDB has no notifications" in text


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SqliteStore("sqlite:///unused.db").schema.sql(aliases=True))
        yield connection


def columns(database: sqlite3.Connection, view: str) -> list[str]:
    return [name for name, *_ in database.execute(f"SELECT * FROM {view}").description]


def undocumented(database: sqlite3.Connection, name: str) -> list[str]:
    """Columns that the section about a table or a view does not name."""
    section = SCHEMA.read_text(encoding="utf-8").split(f"\n## {name}\n")[1].split("\n## ")[0]
    return [column for column in columns(database, name) if f"`{column}`" not in section]


def test_every_column_of_the_view_is_documented(database: sqlite3.Connection) -> None:
    assert undocumented(database, "outbox_event") == []


def test_every_column_of_the_ledger_is_documented(database: sqlite3.Connection) -> None:
    assert undocumented(database, "outbox_ledger") == []


def test_the_ledger_takes_one_entry_each_and_known_states_only(database: sqlite3.Connection) -> None:
    entry = "INSERT INTO outbox_ledger (event_id, destination, status) VALUES (?, ?, ?)"
    for status in ("PROCESSING", "SUCCESS", "FAILED"):
        database.execute(entry, ("evt-001", status, status))
    for refused in [
        ("evt-001", "FAILED", "SUCCESS"),
        ("evt-002", "", "DONE"),
        ("evt-002", "", None),
        (None, "", "FAILED"),
    ]:
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(entry, refused)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_for_operators_runs(database: sqlite3.Connection, query: str) -> None:
    database.execute(query).fetchall()


def test_there_are_queries_for_operators() -> None:
    assert len(QUERIES) > 5


def test_names_with_an_asterisk_exist_here(database: sqlite3.Connection) -> None:
    known = {*VIEWS, *(name for view in VIEWS for name in columns(database, view))}
    marked = set(re.findall(r"(\w+) \*", NAMES[NAMES.index("## Names") :]))
    assert len(marked) > 15
    assert sorted(marked - known) == []


def key(view: str) -> str:
    return "event_id" if view == "outbox_event" else "id"


async def test_each_view_has_its_own_words_for_the_states(tmp_path: Path) -> None:
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        await store.schema.apply(aliases=True)
        with closing(sqlite3.connect(tmp_path / "shop.db")) as file:
            with file:
                Outbox().record(file, *(Event("t", {}, event_id=name) for name in ("new", "done", "dead")))
            owner = await Owner.of(store)
            _, done, dead = await owner.ready()
            await owner.settle(DELIVERED, done)
            await owner.settle(Dead(error="no"), dead)
            words = {view: dict(file.execute(f"SELECT {key(view)}, status FROM {view}").fetchall()) for view in VIEWS}
    assert words == {
        "outbox_event": {"new": "PENDING", "done": "PUBLISHED", "dead": "FAILED"},
        "outbox_events": {"new": "PENDING", "done": "SENT", "dead": "FAILED"},
        "event_outbox": {"new": "PENDING", "done": "PROCESSED", "dead": "FAILED"},
        "event_outbox_dlq": {"dead": "FAILED"},
        "outbox_integration_event": {"new": "NEW", "done": "DONE", "dead": "FAILED"},
    }
