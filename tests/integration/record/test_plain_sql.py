"""Anything that can INSERT is a producer: the databases' own shells, with event type and payload and nothing else."""

import json
import re
import sqlite3
import subprocess
from contextlib import closing

import psycopg

from tests.docs.pages import ROOT
from tests.servers.availability import available
from tests.servers.debian import PSQL, SQLITE

PAGE = ROOT / "docs/how-to/plain-sql-producers.md"
UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
AWKWARD = r'{"path":"C:\\temp\\new","quote":"it' 's"}'


def _psql(url: str, statement: str) -> None:
    command = [available(PSQL.path), "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]
    subprocess.run(command, check=True, capture_output=True)


def _sqlite3(path: str, statement: str) -> None:
    subprocess.run([available(SQLITE.path), "-bail", path, statement], check=True, capture_output=True)


def test_psql_records_with_a_type_and_a_payload(postgres_url: str) -> None:
    _psql(postgres_url, """INSERT INTO outbox_message (event_type, payload) VALUES ('order.placed', '{"id":42}')""")
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute(
            "SELECT payload, content_type, destination, key, event_id ~ %s, occurred_at IS NOT NULL, lane < 64 "
            "FROM outbox_message",
            (f"^{UUID7}$",),
        ).fetchone()
    assert row == (b'{"id":42}', "application/json", "", None, True, True, True)


def test_psql_records_backslashes_through_convert_to(postgres_url: str) -> None:
    _psql(
        postgres_url,
        "INSERT INTO outbox_message (event_type, aggregate_type, aggregate_id, payload) "
        f"VALUES ('file.moved', 'FILE', '7', convert_to('{AWKWARD}', 'UTF8'))",
    )
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT payload, key FROM outbox_message").fetchone()
    assert row == (AWKWARD.replace("''", "'").encode(), "FILE:7")


def test_the_statements_of_the_page_run_in_psql(postgres_url: str) -> None:
    postgres, *_ = PAGE.read_text(encoding="utf-8").partition("## MariaDB")
    for statement in re.findall(r"```sql\n(.*?)```", postgres, re.DOTALL):
        _psql(postgres_url, statement)
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "SELECT convert_from(payload, 'UTF8'), key FROM outbox_message ORDER BY id"
        ).fetchall()
    assert [(json.loads(payload), key) for payload, key in rows] == [
        ({"id": 42}, "order-42"),
        ({"id": 43}, "ORDER:43"),
        ({"id": 44}, "order-44"),
        ({"line": "a\nb", "path": "C:\\bin"}, None),
    ]


def test_a_rollback_in_psql_discards_the_event(postgres_url: str) -> None:
    _psql(postgres_url, "BEGIN; INSERT INTO outbox_message (event_type, payload) VALUES ('never', ''); ROLLBACK")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM outbox_message").fetchone() == (0,)


def test_the_sqlite_shell_records_with_a_type_and_a_payload(sqlite_path: str) -> None:
    _sqlite3(
        sqlite_path,
        "INSERT INTO outbox_message (event_type, payload) "
        f"VALUES ('order.placed', '{{\"id\":42}}'), ('file.moved', '{AWKWARD}')",
    )
    with closing(sqlite3.connect(sqlite_path)) as connection:
        rows = connection.execute(
            "SELECT CAST(payload AS BLOB), content_type, destination, length(event_id), occurred_at LIKE '%Z' "
            "FROM outbox_message ORDER BY id"
        ).fetchall()
    assert rows == [
        (b'{"id":42}', "application/json", "", 36, 1),
        (AWKWARD.replace("''", "'").encode(), "application/json", "", 36, 1),
    ]
