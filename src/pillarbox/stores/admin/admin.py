"""The operators' half of an SQL engine's store."""

from __future__ import annotations

from pillarbox.stores.admin.archive import SqlArchive
from pillarbox.stores.admin.audit import SqlAudit
from pillarbox.stores.admin.dead_letters import SqlDeadLetters
from pillarbox.stores.admin.engine import Engine
from pillarbox.stores.admin.events import SqlEvents
from pillarbox.stores.admin.inspection import SqlInspection
from pillarbox.stores.admin.keys import SqlKeys
from pillarbox.stores.admin.replays import SqlReplays
from pillarbox.stores.admin.requests import SqlRequests
from pillarbox.stores.admin.samples import SqlSamples


class SqlAdmin:
    """See `pillarbox.admin.admin.Admin`."""

    def __init__(self, engine: Engine, *, listing: Engine) -> None:
        """`listing` plans each statement anew: of lists and searches the best plan depends on the filter."""
        self.events = SqlEvents(listing)
        self.dead_letters = SqlDeadLetters(listing, engine)
        self.requests = SqlRequests(engine)
        self.audit = SqlAudit(engine)
        self.replays = SqlReplays(listing, engine)
        self.archive = SqlArchive(engine)
        self.keys = SqlKeys(engine)
        self.inspection = SqlInspection(engine)
        self.samples = SqlSamples(engine)
