"""Lists, shows, retries, edits and discards dead letters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.admin.dead_letters import (
    ALL_DEAD_LETTERS,
    DeadLetterEdit,
    DeadLetterFilter,
    DeadLetterPage,
    FoundDeadLetter,
    ListedDeadLetter,
    dead_letter_page,
)
from pillarbox.admin.listing import EventDetail, rows_to_scan
from pillarbox.core.message import EARLIEST
from pillarbox.stores.admin.engine import LAST, Engine, Parameters, StatementSteps, decode_optional_time
from pillarbox.stores.admin.events import detail_of


class SqlDeadLetters:
    """See `pillarbox.admin.dead_letters.DeadLetters`."""

    def __init__(self, listing: Engine, engine: Engine) -> None:
        """`listing` plans each list anew, because the best plan depends on the filter."""
        self._listing = listing
        self._engine = engine
        self._details = engine.statement("dead_letter_details")
        self._content = engine.statement("read_dead_letter")
        self._lock = engine.statement("lock_dead_letters")
        self._revive = engine.statement("requeue_dead_letters")
        self._revive_edited = engine.statement("requeue_dead_letters", "edited")
        self._reopen = engine.statement("reopen_ledger")
        self._delete = engine.statement("delete_dead_letters")
        self._audit_each = engine.statement("audit_dead_letters")
        self._audit_bulk = engine.statement("audit_progress")
        self._audit_edit = engine.statement("add_audit_entry")

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

    async def details(self, ids: Sequence[int]) -> Sequence[EventDetail]:
        rows = await self._listing.read(self._details, {"dead_letter_ids": [*ids]})
        return [detail_of(self._listing, row) for row in rows]

    async def retry(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        return await self._engine.transact(self._retried(ids, by=by, bulk_action=bulk_action))

    async def edit(
        self,
        dead_letter_id: int,
        *,
        payload: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        by: str = "",
    ) -> bool:
        # The content of a dead letter never changes: reading it is not a part of the transaction.
        for destination, had, had_headers in await self._engine.read(self._content, {"dead_letter_id": dead_letter_id}):
            amendment = DeadLetterEdit.of(had, had_headers, payload=payload, headers=headers)
            detail = {"destination": destination, "dead_letter_id": dead_letter_id, **amendment.summary}
            return await self._engine.transact(self._edited(dead_letter_id, amendment, detail, by=by))
        return False

    async def discard(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        return await self._engine.transact(self._discarded(ids, by=by, bulk_action=bulk_action))

    def _retried(self, ids: Sequence[int], *, by: str, bulk_action: int | None) -> StatementSteps[int]:
        revived = [*(yield from self._revived(ids, self._revive, {}))]
        if revived:
            yield from self._audited("retry", revived, by=by, bulk_action=bulk_action)
            yield self._delete, {"dead_letter_ids": [*revived]}
        return len(revived)

    def _edited(
        self, dead_letter_id: int, amendment: DeadLetterEdit, detail: Mapping[str, Any], *, by: str
    ) -> StatementSteps[bool]:
        content = {"payload": amendment.payload, "headers": amendment.headers_json}
        revived = yield from self._revived([dead_letter_id], self._revive_edited, content)
        for event_id in revived.values():
            entry = {"by": by, "what": "edit", "subject": event_id, "count": 1, "detail": json.dumps(detail)}
            yield self._audit_edit, entry
            yield self._delete, {"dead_letter_ids": [*revived]}
        return bool(revived)

    def _discarded(self, ids: Sequence[int], *, by: str, bulk_action: int | None) -> StatementSteps[int]:
        found = [dead_id for dead_id, _, _ in (yield self._lock, {"dead_letter_ids": [*ids]})]
        yield from self._audited("discard", found, by=by, bulk_action=bulk_action)
        yield self._delete, {"dead_letter_ids": found}
        return len(found)

    def _revived(self, ids: Sequence[int], revive: str, content: Parameters) -> StatementSteps[Mapping[int, str]]:
        """Make dead letters pending again; returns number → event id of those whose event was not pending already."""
        first: dict[tuple[str, str], int] = {}
        for dead_id, event_id, destination in (yield self._lock, {"dead_letter_ids": [*ids]}):
            first.setdefault((event_id, destination), dead_id)
        rows = yield revive, {"dead_letter_ids": [*first.values()], **content}
        revived = [(event_id, destination) for event_id, destination in rows]
        pairs = {"event_ids": [pair[0] for pair in revived], "destinations": [pair[1] for pair in revived]}
        yield self._reopen, pairs
        return {first[pair]: pair[0] for pair in revived}

    def _audited(self, what: str, ids: Sequence[int], *, by: str, bulk_action: int | None) -> StatementSteps[None]:
        """Enter an action on dead letters in the audit: each by itself, or all in the entry of a bulk action."""
        if bulk_action is None:
            yield self._audit_each, {"what": what, "dead_letter_ids": [*ids], "by": by}
        else:
            yield self._audit_bulk, {"done": len(ids), "bulk_action": bulk_action}

    def _found(self, *facts: Any) -> FoundDeadLetter:
        *row, recorded_at, first_failed_at, dead_lettered_at, wanted, edge = facts
        decode_time = self._listing.decode_time
        first = decode_optional_time(self._listing, first_failed_at)
        listed = ListedDeadLetter._make([*row, decode_time(recorded_at), first, decode_time(dead_lettered_at)])
        return FoundDeadLetter(listed, bool(wanted), bool(edge))
