"""The audit: who did what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pillarbox.admin.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.admin.listing import walk
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.events import EVER, written
from pillarbox.stores.sqlite.moments import moment
from pillarbox.stores.sqlite.statements import Statements

_LAST = 2**63 - 1


class SqliteAudit:
    """See `pillarbox.admin.audit.Audit`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_audit_entry")
        self._list = statements.get("list_audit")

    async def add(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        given = {"by": by, "what": what, "subject": subject, "count": count, "detail": json.dumps(dict(detail))}
        [(number, _)] = await self._connection.write(lambda db: db.execute(self._add, given).fetchall())
        return int(number)

    async def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        given = {
            "before": _LAST if before is None else before,
            "who": wanted.who,
            "what": wanted.what,
            "since": written(wanted.since) if wanted.since else EVER,
            "most": limit + 1,
            "walk": walk(limit, asked=wanted.asked, answered=False),
        }
        rows = await self._connection.read(lambda db: db.execute(self._list, given).fetchall())
        return audit_page([_entry(*row) for row in rows], wanted, limit=limit)


def _entry(number: int, at: str, *facts: Any) -> FoundEntry:
    *rest, wanted, edge = facts
    return FoundEntry(AuditEntry(number, moment(at), *rest), bool(wanted), bool(edge))
