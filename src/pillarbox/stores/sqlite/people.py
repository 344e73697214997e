"""What an operator sees and asks for: dead letters are inserted again, waiting messages only requested."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.core.amendment import Amendment
from pillarbox.core.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.core.message import Status
from pillarbox.core.paging import walk
from pillarbox.core.people import Action, DeadLetter, EventRow
from pillarbox.stores.sqlite.browsing import EVER, written
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.moments import moment, moment_or_none
from pillarbox.stores.sqlite.statements import Statements

_LAST = 2**63 - 1


class SqlitePeople:
    """See `pillarbox.core.store.People`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._find = statements.get("find_event")
        self._dead = statements.get("read_dead_letters")
        self._retry = statements.get("retry_dead_letters")
        self._retry_audit = statements.get("retry_audit")
        self._ledger_again = statements.get("retry_ledger")
        self._retry_remove = statements.get("retry_remove")
        self._retry_line_up = statements.get("retry_enqueue")
        self._discard = statements.get("discard_dead_letters")
        self._discard_audit = statements.get("discard_audit")
        self._amend_read = statements.get("read_dead_letter")
        self._amend_content = statements.get("edit_content")
        self._amend_audit = statements.get("edit_audit")
        self._ask = statements.get("add_requests")
        self._grow = statements.get("audit_progress")
        self._remember = statements.get("add_audit_entry")
        self._audit = statements.get("list_audit")

    async def find(self, event_id: str) -> list[EventRow]:
        given = {"event_id": event_id}
        found = await self._connection.read(lambda db: db.execute(self._find, given).fetchall())
        rows = [EventRow._make(row) for row in found]
        return [
            row._replace(
                status=Status(row.status),
                next_retry_at=moment_or_none(row.next_retry_at),
                published_at=moment_or_none(row.published_at),
            )
            for row in rows
        ]

    async def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        given = {"limit": limit, "before": before}
        found = await self._connection.read(lambda db: db.execute(self._dead, given).fetchall())
        return [DeadLetter._make([*facts, moment_or_none(failed), moment(died)]) for *facts, failed, died in found]

    async def retry(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        def work(db: sqlite3.Connection) -> int:
            db.execute(self._retry, {"ids": json.dumps(list(ids))})
            if act is None:
                db.execute(self._retry_audit, {"by": by})
            done = self._line_up(db)
            db.execute(self._grow, {"act": act, "done": done})
            return done

        return await self._connection.write(work)

    async def amend(
        self, letter: int, *, payload: bytes | None = None, headers: Mapping[str, str] | None = None, by: str = ""
    ) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            for destination, had, had_headers in db.execute(self._amend_read, {"letter": letter}).fetchall():
                amendment = Amendment.of(had, had_headers, payload=payload, headers=headers)
                detail = json.dumps({"destination": destination, "dead_id": letter, **amendment.told})
                db.execute(self._retry, {"ids": json.dumps([letter])})
                db.execute(self._amend_content, {"payload": amendment.payload, "headers": amendment.headers_json})
                db.execute(self._amend_audit, {"by": by, "detail": detail})
                return bool(self._line_up(db))
            return False

        return await self._connection.write(work)

    def _line_up(self, db: sqlite3.Connection) -> int:
        """What was just sent again is dead no longer and takes its place at the end of its key."""
        db.execute(self._ledger_again)
        count = db.execute(self._retry_remove).rowcount
        db.execute(self._retry_line_up)
        return count

    async def discard(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        given = {"ids": json.dumps(list(ids)), "by": by}

        def work(db: sqlite3.Connection) -> int:
            if act is None:
                db.execute(self._discard_audit, given)
            done = db.execute(self._discard, given).rowcount
            db.execute(self._grow, {"act": act, "done": done})
            return done

        return await self._connection.write(work)

    async def ask(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        act: int | None = None,
    ) -> list[int]:
        given = {"action": action, "events": json.dumps(list(events)), "delay": delay, "by": by, "act": act}

        def work(db: sqlite3.Connection) -> list[int]:
            # Fetched to the end: a statement that is still running would keep the transaction from committing.
            return [int(request_id) for (request_id,) in db.execute(self._ask, given).fetchall()]

        return await self._connection.write(work)

    async def remember(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        given = {"by": by, "what": what, "subject": subject, "count": count, "detail": json.dumps(dict(detail))}
        [(number, _)] = await self._connection.write(lambda db: db.execute(self._remember, given).fetchall())
        return int(number)

    async def audit(
        self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None
    ) -> AuditPage:
        given = {
            "before": _LAST if before is None else before,
            "who": wanted.who,
            "what": wanted.what,
            "since": written(wanted.since) if wanted.since else EVER,
            "most": limit + 1,
            "walk": walk(limit, asked=wanted.asked, answered=False),
        }
        rows = await self._connection.read(lambda db: db.execute(self._audit, given).fetchall())
        return audit_page([_entry(*row) for row in rows], wanted, limit=limit)


def _entry(number: int, at: str, *facts: Any) -> FoundEntry:
    *rest, wanted, edge = facts
    return FoundEntry(AuditEntry(number, moment(at), *rest), bool(wanted), bool(edge))
