"""How a page is put together from several tables, each of which was looked at up to some row.

A store looks at a bounded number of rows for one page, whatever the filter: where that bound is met first the page is
short, or empty, and still says where it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pillarbox.core.browsing import EventPage, LetterPage, ListedEvent, ListedLetter

WALK = 5_000
"""Rows of one table that are looked at for one page with a filter that no index answers."""


class FoundEvent(NamedTuple):
    """A row that a store looked at for a page of events."""

    event: ListedEvent
    wanted: bool
    edge: bool
    """The last row of its table that was looked at: what comes after it there is not known."""


class FoundLetter(NamedTuple):
    """A row that a store looked at for a page of dead letters."""

    letter: ListedLetter
    wanted: bool
    edge: bool


def event_page(found: Iterable[FoundEvent], *, limit: int) -> EventPage:
    """The page that rows of several tables make; each table brought one wanted row more than the limit, if it could."""
    events: list[ListedEvent] = []
    for event, wanted, edge in sorted(found, key=lambda row: row.event.position, reverse=True):
        if wanted and len(events) == limit:
            return EventPage(events, events[-1].position)
        if wanted:
            events.append(event)
        if edge:
            return EventPage(events, event.position)
    return EventPage(events, None)


def letter_page(found: Sequence[FoundLetter], *, limit: int) -> LetterPage:
    """The page that rows make, the newest first; there is one wanted row more than the limit, if there could be."""
    letters: list[ListedLetter] = []
    for letter, wanted, edge in found:
        if wanted and len(letters) == limit:
            return LetterPage(letters, letters[-1].id)
        if wanted:
            letters.append(letter)
        if edge:
            return LetterPage(letters, letter.id)
    return LetterPage(letters, None)


def walk(limit: int, *, asked: int, answered: bool) -> int:
    """How many rows to look at for a page: no more than it holds if an index answers all that was asked."""
    return limit + 1 if asked <= answered else max(WALK, limit + 1)
