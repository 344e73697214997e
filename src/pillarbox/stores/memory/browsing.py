"""What people leaf through: everything is at hand, so that a page is a look at all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pillarbox.core.browsing import (
    EventDetail,
    EventFilter,
    EventPage,
    LetterFilter,
    LetterPage,
    ListedEvent,
    ListedLetter,
    Position,
    Story,
)
from pillarbox.core.message import Held, Status
from pillarbox.core.paging import FoundEvent, FoundLetter, event_page, letter_page
from pillarbox.core.people import OpenRequest
from pillarbox.stores.memory.people import MemoryPeople
from pillarbox.stores.memory.tables import Buried, Published, Stored, Tables, verb

MOST = 100
"""Failures, and requests, that one story tells at most, as in the statements of the databases."""


class MemoryBrowsing:
    """See `pillarbox.core.browsing.Browsing`."""

    def __init__(self, tables: Tables, people: MemoryPeople) -> None:
        self._tables = tables
        self._people = people

    @verb
    def events(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        after = wanted.after(after)
        found = [
            FoundEvent(event, True, False)
            for detail, held in self._all()
            if _fits(event := _listed(detail), held, wanted)
            and _is_of(detail, *wanted.aggregate_parts)
            and (after is None or event.position < after)
        ]
        return event_page(found, limit=limit)

    @verb
    def letters(self, wanted: LetterFilter, *, limit: int, before: int | None = None) -> LetterPage:
        found = [
            FoundLetter(letter, True, False)
            for number, buried in reversed(self._tables.dead.items())
            if _is_wanted(letter := _letter(number, buried), wanted) and (before is None or number < before)
        ]
        return letter_page(found, limit=limit)

    @verb
    def details(self, letters: Sequence[int]) -> list[EventDetail]:
        newest_first = sorted(set(letters) & self._tables.dead.keys(), reverse=True)
        return [given_up(number, self._tables.dead[number]) for number in newest_first]

    @verb
    def show(self, event_id: str) -> Story:
        found = [detail for detail, _ in self._all() if detail.event_id == event_id]
        failures = [one.failure for one in reversed(self._tables.attempts) if one.event_id == event_id]
        requests = [
            OpenRequest(one.action, one.identity[1], one.delay, one.by, one.at)
            for one in self._tables.requests.values()
            if one.identity[0] == event_id
        ]
        return Story(
            sorted(found, key=lambda detail: (detail.recorded_at, detail.id, detail.destination)),
            failures[:MOST],
            requests[:MOST],
        )

    def _all(self) -> Iterator[tuple[EventDetail, str | None]]:
        for stored in self._tables.waiting.values():
            row = self._people.waiting(stored)
            detail = _detail(stored, row.status)._replace(
                last_error=row.last_error, next_retry_at=row.next_retry_at, locked_by=row.locked_by
            )
            yield detail, stored.message.held
        for published in self._tables.history.values():
            yield delivered(published), None
        for number, buried in self._tables.dead.items():
            yield given_up(number, buried), None


def delivered(row: Published) -> EventDetail:
    """A row of the history, whole."""
    return _detail(row.stored, Status.PUBLISHED)._replace(published_at=row.published_at, seconds=row.seconds)


def given_up(number: int, row: Buried) -> EventDetail:
    """A dead letter, whole."""
    return _detail(row.stored, Status.FAILED)._replace(
        last_error=row.error, letter=number, first_failed_at=row.stored.first_failed_at, died_at=row.died_at
    )


def _detail(stored: Stored, status: Status) -> EventDetail:
    m = stored.message
    return EventDetail(
        id=m.id,
        event_id=m.event_id,
        destination=m.destination,
        status=status,
        event_type=m.event_type,
        aggregate_type=m.aggregate_type,
        aggregate_id=m.aggregate_id,
        key=m.key,
        payload=m.payload,
        content_type=m.content_type,
        headers_json=m.headers_json,
        schema_version=m.schema_version,
        correlation_id=m.correlation_id,
        causation_id=m.causation_id,
        trace_id=m.trace_id,
        occurred_at=m.occurred_at,
        recorded_at=m.recorded_at,
        published_at=None,
        seconds=None,
        attempts=m.attempts,
        retry_count=stored.retry_count,
        last_error=stored.last_error,
        last_attempt_at=None,
        next_retry_at=None,
        locked_by=None,
        locked_at=None,
        letter=None,
        first_failed_at=None,
        died_at=None,
    )


def _listed(detail: EventDetail) -> ListedEvent:
    return ListedEvent._make(getattr(detail, field) for field in ListedEvent._fields)


def _fits(event: ListedEvent, held: str | None, wanted: EventFilter) -> bool:
    return (
        wanted.status in (None, event.status)
        and wanted.event_type in (None, event.event_type)
        and wanted.key in (None, event.key)
        and wanted.destination in (None, event.destination)
        and (wanted.since is None or event.recorded_at >= wanted.since)
        and (wanted.error is None or wanted.error in (event.last_error or ""))
        and (not wanted.retrying or (event.retry_count > 0 and event.status in (Status.PENDING, Status.PROCESSING)))
        and (not wanted.blocked or held == Held.BLOCKED)
        and (not wanted.undelivered or _waits(event, held))
    )


def _is_of(detail: EventDetail, aggregate_type: str | None, aggregate_id: str | None) -> bool:
    return aggregate_type in (None, detail.aggregate_type) and aggregate_id in (None, detail.aggregate_id)


def _waits(event: ListedEvent, held: str | None) -> bool:
    return event.status in (Status.PENDING, Status.PROCESSING) or held == Held.BLOCKED


def _letter(number: int, buried: Buried) -> ListedLetter:
    m = buried.stored.message
    return ListedLetter(
        id=number,
        event_id=m.event_id,
        destination=m.destination,
        event_type=m.event_type,
        key=m.key,
        error=buried.error,
        attempts=m.attempts,
        recorded_at=m.recorded_at,
        first_failed_at=buried.stored.first_failed_at,
        died_at=buried.died_at,
    )


def _is_wanted(letter: ListedLetter, wanted: LetterFilter) -> bool:
    return (
        wanted.event_id in (None, letter.event_id)
        and wanted.event_type in (None, letter.event_type)
        and wanted.key in (None, letter.key)
        and wanted.destination in (None, letter.destination)
        and (wanted.since is None or letter.died_at >= wanted.since)
        and (wanted.error is None or wanted.error in letter.error)
    )
