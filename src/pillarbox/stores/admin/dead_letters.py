"""Dead letters: listed, shown, sent again, edited and discarded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.admin.dead_letters import (
    ALL_DEAD_LETTERS,
    Amendment,
    DeadLetterFilter,
    DeadLetterPage,
    FoundDeadLetter,
    ListedDeadLetter,
    dead_letter_page,
)
from pillarbox.admin.listing import EventDetail, rows_to_scan
from pillarbox.core.message import EARLIEST
from pillarbox.stores.admin.engine import LAST, Engine, moment_or_none
from pillarbox.stores.admin.events import detail_of


class SqlDeadLetters:
    """See `pillarbox.admin.dead_letters.DeadLetters`."""

    def __init__(self, listing: Engine, engine: Engine) -> None:
        """`listing` plans each list anew: which plan is good depends on the filter."""
        self._listing = listing
        self._engine = engine
        self._details = engine.statement("dead_letter_details")
        self._retry = engine.statement("retry_dead_letters")
        self._content = engine.statement("read_dead_letter")
        self._edit = engine.statement("edit_dead_letter")
        self._discard = engine.statement("discard_dead_letters")

    async def list(
        self, wanted: DeadLetterFilter = ALL_DEAD_LETTERS, *, limit: int, before: int | None = None
    ) -> DeadLetterPage:
        variants = [] if wanted.index is None else [f"of_{wanted.index}"]
        given = {
            "before": LAST if before is None else before,
            "event_id": wanted.event_id,
            "type": wanted.event_type,
            "key": wanted.key,
            "destination": wanted.destination,
            "since": wanted.since or EARLIEST,
            "error": wanted.error,
            "most": limit + 1,
            "scan": rows_to_scan(limit, asked=wanted.asked, answered=wanted.index is not None),
        }
        rows = await self._listing.read(self._listing.statement("list_dead_letters", *variants), given)
        return dead_letter_page([self._found(*row) for row in rows], limit=limit)

    async def details(self, letters: Sequence[int]) -> Sequence[EventDetail]:
        rows = await self._listing.read(self._details, {"dead_letter_ids": [*letters]})
        return [detail_of(self._listing, row) for row in rows]

    async def retry(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        [(done,)] = await self._engine.write(
            self._retry, {"dead_letter_ids": [*ids], "by": by, "bulk_action": bulk_action}
        )
        return int(done)

    async def edit(
        self, letter: int, *, payload: bytes | None = None, headers: Mapping[str, str] | None = None, by: str = ""
    ) -> bool:
        # The content of a dead letter never changes: reading it is not a part of the transaction.
        for destination, had, had_headers in await self._engine.read(self._content, {"dead_letter_id": letter}):
            amendment = Amendment.of(had, had_headers, payload=payload, headers=headers)
            given = {
                "dead_letter_id": letter,
                "dead_letter_ids": [letter],
                "payload": amendment.payload,
                "headers": amendment.headers_json,
                "by": by,
                "detail": json.dumps({"destination": destination, "dead_letter_id": letter, **amendment.told}),
            }
            [(done,)] = await self._engine.write(self._edit, given)
            return bool(done)
        return False

    async def discard(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        [(done,)] = await self._engine.write(
            self._discard, {"dead_letter_ids": [*ids], "by": by, "bulk_action": bulk_action}
        )
        return int(done)

    def _found(self, *facts: Any) -> FoundDeadLetter:
        *row, recorded_at, first_failed_at, dead_lettered_at, wanted, edge = facts
        moment = self._listing.moment
        first = moment_or_none(self._listing, first_failed_at)
        letter = ListedDeadLetter._make([*row, moment(recorded_at), first, moment(dead_lettered_at)])
        return FoundDeadLetter(letter, bool(wanted), bool(edge))
