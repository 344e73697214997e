"""Dead letters: listed, shown, sent again, edited and discarded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.events import EVER, detail_of
from pillarbox.stores.postgres.statements import Statements

_LAST = 2**63 - 1


class PostgresDeadLetters:
    """See `pillarbox.admin.dead_letters.DeadLetters`."""

    def __init__(self, listing: Connection, connection: Connection, statements: Statements) -> None:
        """`listing` plans each page anew."""
        self._listing = listing
        self._connection = connection
        self._statements = statements
        self._details = statements.get("dead_letter_details")
        self._retry = statements.get("retry_dead_letters")
        self._discard = statements.get("discard_dead_letters")
        self._amend_read = statements.get("read_dead_letter")
        self._amend = statements.get("edit_dead_letter")

    async def list(
        self, wanted: DeadLetterFilter = EVERY_LETTER, *, limit: int, before: int | None = None
    ) -> DeadLetterPage:
        narrowed = () if wanted.index is None else (f"of_{wanted.index}",)
        rows = await self._listing.fetch(
            self._statements.get("list_dead_letters", *narrowed),
            _LAST if before is None else before,
            wanted.event_type,
            wanted.key,
            wanted.destination,
            wanted.since or EVER,
            wanted.error,
            limit + 1,
            walk(limit, asked=wanted.asked, answered=wanted.index is not None),
            wanted.event_id,
        )
        found = [FoundDeadLetter(ListedDeadLetter._make(facts), fits, edge) for *facts, fits, edge in rows]
        return dead_letter_page(found, limit=limit)

    async def details(self, letters: Sequence[int]) -> Sequence[EventDetail]:
        return [detail_of(row) for row in await self._listing.fetch(self._details, list(letters))]

    async def retry(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        return int((await self._connection.fetch(self._retry, list(ids), by, act))[0][0])

    async def edit(
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
