"""What an operator sees and asks for: dead letters are inserted again, waiting messages only requested."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pillarbox.core.amendment import Amendment
from pillarbox.core.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.core.message import Status
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.paging import walk
from pillarbox.core.people import Action, DeadLetter, EventRow
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements

# The driver takes it for the beginning of time.
_EVER = datetime.min.replace(tzinfo=UTC)
_LAST = 2**63 - 1


class PostgresPeople:
    """See `pillarbox.core.store.People`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._find = statements.get("find_event")
        self._dead = statements.get("read_dead_letters")
        self._retry = statements.get("retry_dead_letters")
        self._discard = statements.get("discard_dead_letters")
        self._amend_read = statements.get("read_dead_letter")
        self._amend = statements.get("edit_dead_letter")
        self._ask = statements.get("add_requests")
        self._remember = statements.get("add_audit_entry")
        self._audit = statements.get("list_audit")

    async def find(self, event_id: str) -> list[EventRow]:
        rows = await self._connection.fetch(self._find, event_id)
        return [EventRow._make(row)._replace(status=Status(row["status"])) for row in rows]

    async def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        return [DeadLetter._make(row) for row in await self._connection.fetch(self._dead, limit, before)]

    async def retry(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        return int((await self._connection.fetch(self._retry, list(ids), by, act))[0][0])

    async def amend(
        self, letter: int, *, payload: bytes | None = None, headers: Mapping[str, str] | None = None, by: str = ""
    ) -> bool:
        for destination, had, had_headers in await self._connection.fetch(self._amend_read, letter):
            amendment = Amendment.of(had, had_headers, payload=payload, headers=headers)
            detail = json.dumps({"destination": destination, "dead_id": letter, **amendment.told})
            [(done,)] = await self._connection.fetch(
                self._amend, letter, amendment.payload, amendment.headers_json, by, detail
            )
            return bool(done)
        return False

    async def discard(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        return int((await self._connection.fetch(self._discard, list(ids), by, act))[0][0])

    async def ask(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        act: int | None = None,
    ) -> list[int]:
        event_ids, destinations = [event_id for event_id, _ in events], [destination for _, destination in events]
        rows = await self._connection.fetch(
            self._ask, action, event_ids, destinations, min(delay, LONGEST_DELAY), by, act
        )
        return [int(request_id) for (request_id,) in rows]

    async def remember(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        told = json.dumps(dict(detail))
        [(number, _)] = await self._connection.fetch(self._remember, by, what, subject, count, told)
        return int(number)

    async def audit(
        self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None
    ) -> AuditPage:
        rows = await self._connection.fetch(
            self._audit,
            _LAST if before is None else before,
            wanted.who,
            wanted.what,
            wanted.since or _EVER,
            limit + 1,
            walk(limit, asked=wanted.asked, answered=False),
        )
        found = [FoundEntry(AuditEntry(*facts), fits, edge) for *facts, fits, edge in rows]
        return audit_page(found, wanted, limit=limit)
