"""The audit: who did what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pillarbox.admin.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.admin.listing import rows_to_scan
from pillarbox.core.message import EARLIEST
from pillarbox.stores.admin.engine import LAST, Engine


class SqlAudit:
    """See `pillarbox.admin.audit.Audit`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._add = engine.statement("add_audit_entry")
        self._list = engine.statement("list_audit")

    async def add(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        given = {"by": by, "what": what, "subject": subject, "count": count, "detail": json.dumps(dict(detail))}
        [(number, _)] = await self._engine.write(self._add, given)
        return int(number)

    async def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        given = {
            "before": LAST if before is None else before,
            "who": wanted.who,
            "what": wanted.what,
            "since": wanted.since or EARLIEST,
            "most": limit + 1,
            "scan": rows_to_scan(limit, asked=wanted.asked, answered=False),
        }
        rows = await self._engine.read(self._list, given)
        return audit_page([self._found(*row) for row in rows], wanted, limit=limit)

    def _found(self, number: int, at: Any, *facts: Any) -> FoundEntry:
        *rest, wanted, edge = facts
        return FoundEntry(AuditEntry(number, self._engine.decode_time(at), *rest), bool(wanted), bool(edge))
