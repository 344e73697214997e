"""A store with masked text: filters match what is shown, and nothing else.

Invariants: a filter matches masked text only, because otherwise a user could guess masked text one character at a time;
rules run in a thread, because they take time and would block the event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pillarbox.admin.admin import Admin, AdminStore
from pillarbox.admin.audit import EVERYTHING, Audit, AuditEntry, AuditFilter, AuditPage
from pillarbox.admin.dead_letters import ALL_DEAD_LETTERS, DeadLetterFilter, DeadLetterPage, DeadLetters
from pillarbox.admin.listing import EventDetail, EventFilter, EventPage, EventReport, Events, Position
from pillarbox.ops.console.masking import Masks


def masked_store(store: AdminStore, masks: Masks) -> AdminStore:
    """Return the store with masked errors and audit entries; the store itself if no rule applies to text."""
    return cast("AdminStore", _MaskedStore(store, masks)) if masks.texts else store


class _MaskedStore:
    def __init__(self, store: AdminStore, masks: Masks) -> None:
        self._store = store
        self.admin = _MaskedAdmin(store.admin, masks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _MaskedAdmin:
    def __init__(self, admin: Admin, masks: Masks) -> None:
        self._admin = admin
        text = _Text(masks)
        self.events = _MaskedEvents(admin.events, text)
        self.dead_letters = _MaskedDeadLetters(admin.dead_letters, text)
        self.audit = _MaskedAudit(admin.audit, masks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)


class _Text:
    """Masks errors."""

    def __init__(self, masks: Masks) -> None:
        self.masks = masks

    def shown(self, event: Any) -> Any:
        return event if event.last_error is None else event._replace(last_error=self.masked(event.last_error))

    def masked(self, error: str) -> str:
        shown = self.masks.text(error)
        self.masks.text(shown)  # a page masks it again: then it is cached
        return shown


class _MaskedEvents:
    """Events with masked errors."""

    def __init__(self, events: Events, text: _Text) -> None:
        self._events, self._text = events, text

    async def list(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        # Text that occurs in the masked error also occurs in the original, so that the store finds all matches.
        page = await self._events.list(wanted, limit=limit, after=after)
        shown = await asyncio.to_thread(lambda: [self._text.shown(event) for event in page.events])
        return EventPage([event for event in shown if _matches(event.last_error, wanted.error)], page.after)

    async def show(self, event_id: str) -> EventReport:
        story = await self._events.show(event_id)
        return await asyncio.to_thread(self._masked, story)

    def _masked(self, story: EventReport) -> EventReport:
        failures = [failure._replace(error=self._text.masked(failure.error)) for failure in story.failures]
        return story._replace(events=[self._text.shown(detail) for detail in story.events], failures=failures)


class _MaskedDeadLetters:
    """Dead letters that are filtered by masked errors, and grouped by the original ones."""

    def __init__(self, dead_letters: DeadLetters, text: _Text) -> None:
        self._dead_letters, self._text = dead_letters, text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dead_letters, name)

    async def list(
        self, wanted: DeadLetterFilter = ALL_DEAD_LETTERS, *, limit: int, before: int | None = None
    ) -> DeadLetterPage:
        page = await self._dead_letters.list(wanted, limit=limit, before=before)
        texts = await asyncio.to_thread(
            lambda: [self._text.masks.text(dead_letter.error) for dead_letter in page.dead_letters]
        )
        matching = [
            dead_letter
            for dead_letter, text in zip(page.dead_letters, texts, strict=True)
            if _matches(text, wanted.error)
        ]
        return DeadLetterPage(matching, page.before)

    async def details(self, dead_letters: Sequence[int]) -> Sequence[EventDetail]:
        found = await self._dead_letters.details(dead_letters)
        return await asyncio.to_thread(lambda: [self._text.shown(detail) for detail in found])


class _MaskedAudit:
    def __init__(self, audit: Audit, masks: Masks) -> None:
        self._audit, self._masks = audit, masks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._audit, name)

    async def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        page = await self._audit.list(wanted, limit=limit, before=before)
        return page._replace(entries=await asyncio.to_thread(lambda: [self._shown(entry) for entry in page.entries]))

    def _shown(self, entry: AuditEntry) -> AuditEntry:
        """Mask an entry: the subject of a bulk action contains the filter text."""
        detail = json.dumps(self._masks.everywhere(dict(entry.detail)), ensure_ascii=False)
        return replace(entry, subject=self._masks.text(entry.subject), detail_json=detail)


def _matches(shown: str | None, wanted: str | None) -> bool:
    return wanted is None or wanted in (shown or "")
