"""Another engine needs new files only: a driver, a dialect and its statements; no file that exists changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pillarbox

DRIVER = """
from pillarbox.connections.connection import drive, guarded
from pillarbox.connections.driver import Driver


def _no_guard():
    yield from ()


class ToyConnection:
    def __init__(self, connection):
        self._connection = connection

    def run(self, operation):
        return drive(guarded(_no_guard(), operation, "toy"), self._execute)

    def _execute(self, statement):
        return self._connection.execute(statement.sql, statement.parameters)


DRIVER = Driver(
    accepts="a toydb connection",
    connections={("toydb", "Connection"): ToyConnection},
    remedies={("toydb", "Pool"): "pass a connection of the pool"},
)
"""
DIALECT = """
from pillarbox.connections import BoundStatement
from pillarbox.dialects.dialect import Dialect, FailedWrite, WriteFailure
from pillarbox.statements import Names


class ToyAppender:
    def __init__(self, sql):
        self._sql = sql

    def steps(self, rows):
        for row in rows:
            yield BoundStatement(self._sql, (row.event_id,))


class ToyNames(Names):
    def qualified(self, name):
        return f"[{name}]"


class ToyDialect(Dialect):
    name = "toy"

    def names(self, tables):
        return ToyNames(prefix=tables.prefix)

    def appender(self, statements, options):
        return ToyAppender(statements.get("append"))

    def explain(self, error):
        return FailedWrite(WriteFailure.DUPLICATE) if "twice" in str(error) else None

    def refuses_value(self, error):
        return False


DIALECT = ToyDialect()
"""
RECORD = "-- name: append\n-- Append one event.\nINSERT INTO {message} VALUES ($1)\n"
INBOX = """-- name: admit
-- Insert an inbox record.
INSERT INTO {inbox} VALUES ($1, $2)

-- name: count_results
-- Add statistics.
INSERT INTO {inbox_statistics} VALUES ($1)
"""
TOYDB = """
class Connection:
    def __init__(self):
        self.statements = []

    def execute(self, sql, parameters):
        if (sql, parameters) in self.statements:
            raise ValueError("twice")
        self.statements.append((sql, tuple(parameters)))
        return [(1,)]


class Pool:
    pass
"""
PROGRAM = """
import toydb
from pillarbox import DuplicateEventError, Event, Inbox, InvalidConnectionError, Outbox

connection = toydb.Connection()
Outbox().record(connection, Event("a", {}, event_id="e1"))
assert Inbox().admit(connection, "billing", "e1")
print(*connection.statements, sep="\\n")
for attempt in (
    lambda: Outbox().record(connection, Event("a", {}, event_id="e1")),
    lambda: Outbox().record(toydb.Pool(), Event("a", {})),
    lambda: Outbox().record(object(), Event("a", {})),
):
    try:
        attempt()
    except (DuplicateEventError, InvalidConnectionError) as error:
        print(error)
"""


def test_another_engine_needs_new_files_only(tmp_path: Path) -> None:
    package = tmp_path / "pillarbox"
    shutil.copytree(Path(pillarbox.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "console"))
    new = {
        package / "connections" / "drivers" / "toydb.py": DRIVER,
        package / "dialects" / "toy.py": DIALECT,
        package / "dialects" / "sql" / "record_toy.sql": RECORD,
        package / "dialects" / "sql" / "inbox_toy.sql": INBOX,
        tmp_path / "toydb.py": TOYDB,
    }
    for path, text in new.items():
        assert not path.exists()
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    inserted, admitted, duplicate, pool, unknown = done.stdout.splitlines()
    assert inserted == "('INSERT INTO [outbox_message] VALUES ($1)', ('e1',))"
    assert admitted == "('INSERT INTO [outbox_inbox] VALUES ($1, $2)', ('billing', 'e1'))"
    assert duplicate.startswith("event e1 is in the outbox already")
    assert pool == "toydb.Pool is not a transaction to work in; pass a connection of the pool"
    assert "a toydb connection" in unknown
