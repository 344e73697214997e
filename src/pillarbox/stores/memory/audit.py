"""The audit: who did what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pillarbox.admin.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.stores.memory.tables import Tables, verb


class MemoryAudit:
    """See `pillarbox.admin.audit.Audit`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def add(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        return self._tables.remember(by, what, subject, count=count, **detail).id

    @verb
    def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        found = [
            FoundEntry(entry, _is_wanted(entry, wanted), False)
            for number, entry in reversed(self._tables.audit.items())
            if before is None or number < before
        ]
        return audit_page(found, wanted, limit=limit)


def _is_wanted(entry: AuditEntry, wanted: AuditFilter) -> bool:
    return (
        wanted.who in (None, entry.who)
        and wanted.what in (None, entry.what)
        and (wanted.since is None or entry.at >= wanted.since)
    )
