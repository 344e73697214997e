"""The operators' half of the store."""

from __future__ import annotations

from pillarbox.stores.postgres.archive import PostgresArchive
from pillarbox.stores.postgres.audit import PostgresAudit
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.dead_letters import PostgresDeadLetters
from pillarbox.stores.postgres.events import PostgresEvents
from pillarbox.stores.postgres.inspection import PostgresInspection
from pillarbox.stores.postgres.keys import PostgresKeys
from pillarbox.stores.postgres.replays import PostgresReplays
from pillarbox.stores.postgres.requests import PostgresRequests
from pillarbox.stores.postgres.statements import Statements
from pillarbox.stores.postgres.statistics import PostgresSamples


class PostgresAdmin:
    """See `pillarbox.admin.admin.Admin`."""

    def __init__(self, listing: Connection, connection: Connection, statements: Statements) -> None:
        """`listing` plans each statement anew: which plan is good depends on the filter."""
        self.events = PostgresEvents(listing, statements)
        self.dead_letters = PostgresDeadLetters(listing, connection, statements)
        self.replays = PostgresReplays(listing, connection, statements)
        self.requests = PostgresRequests(connection, statements)
        self.audit = PostgresAudit(connection, statements)
        self.archive = PostgresArchive(connection, statements)
        self.keys = PostgresKeys(connection, statements)
        self.inspection = PostgresInspection(connection, statements)
        self.samples = PostgresSamples(connection, statements)
