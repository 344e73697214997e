"""The transaction control of Python 3.12: `autocommit` decides, not `isolation_level`."""

import sqlite3
import sys
from contextlib import closing
from typing import Any

import pytest

from pillarbox import Event, NotInTransactionError, Outbox
from pillarbox.testing.conformance.capability import NOT_SUPPORTED
from tests.integration.record.conftest import committed_ids

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason=f"{NOT_SUPPORTED}sqlite3 has no `autocommit` before Python 3.12"
)

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")


def _connect(path: str, autocommit: Any) -> sqlite3.Connection:
    options: dict[str, Any] = {"autocommit": autocommit}
    connection: sqlite3.Connection = sqlite3.connect(path, **options)
    return connection


def test_autocommit_is_rejected_unless_a_transaction_is_open(sqlite_path: str) -> None:
    with closing(_connect(sqlite_path, True)) as connection:
        with pytest.raises(NotInTransactionError):
            Outbox().record(connection, EVENT)
        connection.execute("BEGIN")
        Outbox().record(connection, EVENT)
        assert committed_ids(sqlite_path) == []
        connection.execute("COMMIT")
    assert committed_ids(sqlite_path) == ["evt-001"]


def test_without_autocommit_a_transaction_is_always_open(sqlite_path: str) -> None:
    with closing(_connect(sqlite_path, False)) as connection:
        Outbox().record(connection, EVENT)
        connection.rollback()
        Outbox().record(connection, EVENT)
        assert committed_ids(sqlite_path) == []
        connection.commit()
    assert committed_ids(sqlite_path) == ["evt-001"]
