"""The audit: who did what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pillarbox.admin.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.admin.listing import walk
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.events import EVER
from pillarbox.stores.postgres.statements import Statements

_LAST = 2**63 - 1


class PostgresAudit:
    """See `pillarbox.admin.audit.Audit`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_audit_entry")
        self._list = statements.get("list_audit")

    async def add(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        told = json.dumps(dict(detail))
        [(number, _)] = await self._connection.fetch(self._add, by, what, subject, count, told)
        return int(number)

    async def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        rows = await self._connection.fetch(
            self._list,
            _LAST if before is None else before,
            wanted.who,
            wanted.what,
            wanted.since or EVER,
            limit + 1,
            walk(limit, asked=wanted.asked, answered=False),
        )
        found = [FoundEntry(AuditEntry(*facts), fits, edge) for *facts, fits, edge in rows]
        return audit_page(found, wanted, limit=limit)
