"""Scripts are split where a shell of the database would split them."""

import sqlite3

import pytest

from pillarbox import TableNames
from pillarbox.stores.splitting import split_statements
from pillarbox.stores.sqlite import SqliteStore


def split(script: str, *, backslashes: bool = False) -> list[str]:
    return list(split_statements(script, backslashes=backslashes))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'a;b', 'it''s; fine'",
        'SELECT "a;b" FROM "odd""; name"',
        "SELECT `a;b`",
        "SELECT 1 -- not; the end\n + 2",
        "SELECT 1 /* not; the /* end; */ yet; */ + 2",
        "CREATE FUNCTION f() RETURNS int AS $$ BEGIN; RETURN 1; END; $$ LANGUAGE plpgsql",
        "DO $tag$ BEGIN PERFORM $$a;b$$; END $tag$",
        "SELECT $1; ".removesuffix("; "),
        r"SELECT E'it\'s; fine'",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM b; END",
        "CREATE OR REPLACE FUNCTION f() RETURNS INT BEGIN IF a THEN SET b = 1; END IF; RETURN b; END",
        "CREATE PROCEDURE p() BEGIN CASE a WHEN 1 THEN SET b = 1; END CASE; BEGIN SELECT 1; END; END",
        "BEGIN NOT ATOMIC IF a THEN SELECT 1; END IF; END",
        "SELECT CASE WHEN a THEN b END FROM t",
        "CREATE INDEX function_begin_idx ON t (begin)",
        "(SELECT 1)",
        "1",
    ],
)
def test_a_statement_stays_whole_beside_others(statement: str) -> None:
    assert split(f"{statement};") == [statement]
    assert split(f"SELECT 0;{statement};\n\nSELECT 2;\n") == ["SELECT 0", statement, "SELECT 2"]
    assert split(f"SELECT 0; -- it's\n/* don't */ {statement}") == ["SELECT 0", statement]


def test_a_backslash_escapes_a_quote_only_where_the_engine_says_so() -> None:
    assert split(r"SELECT 'a\'; b'; SELECT 2", backslashes=True) == [r"SELECT 'a\'; b'", "SELECT 2"]
    assert split(r"SELECT 'a\'; SELECT 2", backslashes=False) == [r"SELECT 'a\'", "SELECT 2"]


@pytest.mark.parametrize("nothing", ["", "  \n", ";", " ; ;; ", "-- only a comment", "/* only; a */;", "-- a\n;-- b"])
def test_a_script_without_statements_is_empty(nothing: str) -> None:
    assert split(nothing) == []


@pytest.mark.parametrize("unfinished", ["SELECT 'a; b", "SELECT $$a; b", "SELECT 1 /* a; b", 'SELECT "a; b'])
def test_an_open_quote_or_comment_goes_on_to_the_end(unfinished: str) -> None:
    assert split(unfinished) == [unfinished]


def test_sqlite_finds_the_same_statements() -> None:
    """SQLite's own parser decides where the statements of our longest script with triggers end."""
    script = SqliteStore("sqlite:///unused.db", tables=TableNames(prefix="shop_outbox_")).schema.sql(aliases=True)
    statements = split(script)
    assert len(statements) > 50
    assert all(sqlite3.complete_statement(f"{statement};") for statement in statements)
    assert not any(sqlite3.complete_statement(statement) for statement in statements)
