"""The operators' half of the store."""

from __future__ import annotations

from pillarbox.stores.sqlite.archive import SqliteArchive
from pillarbox.stores.sqlite.audit import SqliteAudit
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.dead_letters import SqliteDeadLetters
from pillarbox.stores.sqlite.events import SqliteEvents
from pillarbox.stores.sqlite.inspection import SqliteInspection
from pillarbox.stores.sqlite.keys import SqliteKeys
from pillarbox.stores.sqlite.replays import SqliteReplays
from pillarbox.stores.sqlite.requests import SqliteRequests
from pillarbox.stores.sqlite.statements import Statements
from pillarbox.stores.sqlite.statistics import SqliteSamples


class SqliteAdmin:
    """See `pillarbox.admin.admin.Admin`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self.events = SqliteEvents(connection, statements)
        self.dead_letters = SqliteDeadLetters(connection, statements)
        self.replays = SqliteReplays(connection, statements)
        self.requests = SqliteRequests(connection, statements)
        self.audit = SqliteAudit(connection, statements)
        self.archive = SqliteArchive(connection, statements)
        self.keys = SqliteKeys(connection, statements)
        self.inspection = SqliteInspection(connection, statements)
        self.samples = SqliteSamples(connection, statements)
