"""Dead letters: listed, shown, sent again, edited and discarded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pillarbox.admin.dead_letters import (
    EVERY_LETTER,
    Amendment,
    DeadLetterFilter,
    DeadLetterPage,
    FoundDeadLetter,
    ListedDeadLetter,
    dead_letter_page,
)
from pillarbox.admin.listing import EventDetail, walk
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.events import EVER, detail_of, written
from pillarbox.stores.sqlite.moments import moment, moment_or_none
from pillarbox.stores.sqlite.statements import Statements

_LAST = 2**63 - 1


class SqliteDeadLetters:
    """See `pillarbox.admin.dead_letters.DeadLetters`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements
        self._details = statements.get("dead_letter_details")
        self._retry = statements.get("retry_dead_letters")
        self._discard = statements.get("discard_dead_letters")
        self._amend_read = statements.get("read_dead_letter")
        self._retry_audit = statements.get("retry_audit")
        self._ledger_again = statements.get("retry_ledger")
        self._retry_remove = statements.get("retry_remove")
        self._retry_line_up = statements.get("retry_enqueue")
        self._discard_audit = statements.get("discard_audit")
        self._amend_content = statements.get("edit_content")
        self._amend_audit = statements.get("edit_audit")
        self._grow = statements.get("audit_progress")

    async def list(
        self, wanted: DeadLetterFilter = EVERY_LETTER, *, limit: int, before: int | None = None
    ) -> DeadLetterPage:
        narrowed = () if wanted.index is None else (f"of_{wanted.index}",)
        sql = self._statements.get("list_dead_letters", *narrowed)
        given = {
            "before": _LAST if before is None else before,
            "event_id": wanted.event_id,
            "type": wanted.event_type,
            "key": wanted.key,
            "destination": wanted.destination,
            "since": written(wanted.since) if wanted.since else EVER,
            "error": wanted.error,
            "most": limit + 1,
            "walk": walk(limit, asked=wanted.asked, answered=wanted.index is not None),
        }
        rows = await self._connection.read(lambda db: db.execute(sql, given).fetchall())
        return dead_letter_page([_letter(row) for row in rows], limit=limit)

    async def details(self, letters: Sequence[int]) -> Sequence[EventDetail]:
        given = {"letters": json.dumps(list(letters))}
        rows = await self._connection.read(lambda db: db.execute(self._details, given).fetchall())
        return [detail_of(row) for row in rows]

    async def retry(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        def work(db: sqlite3.Connection) -> int:
            db.execute(self._retry, {"ids": json.dumps(list(ids))})
            if act is None:
                db.execute(self._retry_audit, {"by": by})
            done = self._line_up(db)
            db.execute(self._grow, {"act": act, "done": done})
            return done

        return await self._connection.write(work)

    async def edit(
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


def _letter(row: Iterable[Any]) -> FoundDeadLetter:
    *facts, wanted, edge = row
    letter = ListedDeadLetter._make(facts)
    letter = letter._replace(
        recorded_at=moment(letter.recorded_at),
        first_failed_at=moment_or_none(letter.first_failed_at),
        died_at=moment(letter.died_at),
    )
    return FoundDeadLetter(letter, bool(wanted), bool(edge))
