"""A store as the console sees it where rules hide text: whoever searches finds by what is shown, and by nothing else.

What must stay true: a filter answers for masked text only, or guessing letter by letter would tell what is hidden; and
rules run on a thread, because they may take a while and the event loop has others to serve.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pillarbox.core.audit import EVERYTHING, AuditEntry, AuditFilter, AuditPage
from pillarbox.core.browsing import (
    Browsing,
    EventDetail,
    EventFilter,
    EventPage,
    LetterFilter,
    LetterPage,
    Position,
    Story,
)
from pillarbox.core.store import People, Store
from pillarbox.ops.console.masking import Masks


def masked_store(store: Store, masks: Masks) -> Store:
    """The store itself where no rule is about text."""
    return cast("Store", _MaskedStore(store, masks)) if masks.texts else store


class _MaskedStore:
    def __init__(self, store: Store, masks: Masks) -> None:
        self._store = store
        self.browsing = _MaskedBrowsing(store.browsing, masks)
        self.people = _MaskedPeople(store.people, masks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _MaskedBrowsing:
    """Errors of events are masked here already; those of dead letters are shown masked, and grouped as they are."""

    def __init__(self, browsing: Browsing, masks: Masks) -> None:
        self._browsing, self._masks = browsing, masks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browsing, name)

    async def events(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        # Text that is found in what is shown is in what was said as well: the store finds enough.
        page = await self._browsing.events(wanted, limit=limit, after=after)
        shown = await asyncio.to_thread(lambda: [self._shown(event) for event in page.events])
        return EventPage([event for event in shown if _fits(event.last_error, wanted.error)], page.after)

    async def letters(self, wanted: LetterFilter, *, limit: int, before: int | None = None) -> LetterPage:
        page = await self._browsing.letters(wanted, limit=limit, before=before)
        texts = await asyncio.to_thread(lambda: [self._masks.text(letter.error) for letter in page.letters])
        fitting = [letter for letter, text in zip(page.letters, texts, strict=True) if _fits(text, wanted.error)]
        return LetterPage(fitting, page.before)

    async def details(self, letters: Sequence[int]) -> list[EventDetail]:
        found = await self._browsing.details(letters)
        return await asyncio.to_thread(lambda: [self._shown(detail) for detail in found])

    async def show(self, event_id: str) -> Story:
        story = await self._browsing.show(event_id)
        return await asyncio.to_thread(self._told, story)

    def _told(self, story: Story) -> Story:
        failures = [failure._replace(error=self._text(failure.error)) for failure in story.failures]
        return story._replace(events=[self._shown(detail) for detail in story.events], failures=failures)

    def _shown(self, event: Any) -> Any:
        return event if event.last_error is None else event._replace(last_error=self._text(event.last_error))

    def _text(self, said: str) -> str:
        shown = self._masks.text(said)
        self._masks.text(shown)  # a page masks it once more: then it is known
        return shown


class _MaskedPeople:
    def __init__(self, people: People, masks: Masks) -> None:
        self._people, self._masks = people, masks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._people, name)

    async def audit(
        self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None
    ) -> AuditPage:
        page = await self._people.audit(wanted, limit=limit, before=before)
        return page._replace(entries=await asyncio.to_thread(lambda: [self._shown(entry) for entry in page.entries]))

    def _shown(self, entry: AuditEntry) -> AuditEntry:
        """What somebody searched for is a part of what they did."""
        detail = json.dumps(self._masks.everywhere(dict(entry.detail)), ensure_ascii=False)
        return replace(entry, subject=self._masks.text(entry.subject), detail_json=detail)


def _fits(shown: str | None, wanted: str | None) -> bool:
    return wanted is None or wanted in (shown or "")
