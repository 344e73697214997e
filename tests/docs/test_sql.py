"""What the reference says about SQL is so: columns, the queries it shows, the names that others know."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from pillarbox.stores.sqlite import SqliteStore
from tests.docs.pages import ROOT, blocks

SCHEMA = ROOT / "docs/reference/schema.md"
VOCABULARY = (ROOT / "docs/reference/vocabulary.md").read_text(encoding="utf-8")
VIEWS = ("outbox_event", "outbox_events", "event_outbox")
QUERIES = [line for block in blocks(SCHEMA, "sql") for line in block.splitlines()]


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SqliteStore("sqlite:///unused.db").schema.sql(aliases=True))
        yield connection


def columns(database: sqlite3.Connection, view: str) -> list[str]:
    return [name for name, *_ in database.execute(f"SELECT * FROM {view}").description]


def test_every_column_of_the_view_is_documented(database: sqlite3.Connection) -> None:
    text = SCHEMA.read_text(encoding="utf-8")
    section = text[text.index("## outbox_event\n") : text.index("## For operators")]
    assert [name for name in columns(database, "outbox_event") if f"`{name}`" not in section] == []


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_for_operators_runs(database: sqlite3.Connection, query: str) -> None:
    database.execute(query).fetchall()


def test_there_are_queries_for_operators() -> None:
    assert len(QUERIES) > 5


def test_names_with_an_asterisk_exist_here(database: sqlite3.Connection) -> None:
    known = {*VIEWS, *(name for view in VIEWS for name in columns(database, view))}
    marked = set(re.findall(r"(\w+) \*", VOCABULARY[VOCABULARY.index("## Names") :]))
    assert len(marked) > 15
    assert sorted(marked - known) == []
