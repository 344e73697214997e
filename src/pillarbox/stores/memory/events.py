"""Lists and shows events. Each page scans all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pillarbox.admin.listing import (
    EventDetail,
    EventFilter,
    EventPage,
    EventReport,
    FoundEvent,
    ListedEvent,
    Position,
    event_page,
)
from pillarbox.admin.requests import OpenRequest
from pillarbox.admin.states import UNDELIVERED, EventState
from pillarbox.core.message import Held, Message
from pillarbox.stores.memory.tables import Identity, StoredDeadLetter, StoredDelivery, StoredMessage, Tables, atomic

MOST = 100
"""The most failures, and the most requests, of one event, as in the statements of the SQL stores."""


class MemoryEvents:
    """See `pillarbox.admin.listing.Events`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def list(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        after = wanted.after(after)
        found = [
            FoundEvent(event, True, False)
            for detail in self._all()
            if _fits(event := _listed(detail), wanted)
            and _is_of(detail, *wanted.aggregate_parts)
            and (after is None or event.position < after)
        ]
        return event_page(found, limit=limit)

    @atomic
    def show(self, event_id: str) -> EventReport:
        found = [detail for detail in self._all() if detail.event_id == event_id]
        failures = [one.failure for one in reversed(self._tables.attempts) if one.event_id == event_id]
        requests = [
            OpenRequest(one.action, one.identity[1], one.delay, one.by, one.at)
            for one in self._tables.requests.values()
            if one.identity[0] == event_id
        ]
        return EventReport(
            sorted(found, key=lambda detail: (detail.recorded_at, detail.id, detail.destination)),
            failures[:MOST],
            requests[:MOST],
        )

    def _all(self) -> Iterator[EventDetail]:
        for stored in self._tables.waiting.values():
            yield self._pending(stored)
        for published in self._tables.history.values():
            yield delivered(published)
        for number, dead_letter in self._tables.dead.items():
            yield dead_letter_detail(number, dead_letter)

    def _pending(self, stored: StoredMessage) -> EventDetail:
        state = stored_state(stored.message)
        if state is EventState.BLOCKED:
            return _detail(stored, state)._replace(last_error=stored.last_error, next_retry_at=None)
        relay = self._in_flight_at(stored.message.identity)
        error, next_attempt = self._outage(stored.message)
        return _detail(stored, state if relay is None else EventState.IN_FLIGHT)._replace(
            last_error=stored.last_error or error,
            next_retry_at=stored.message.available_at or next_attempt,
            locked_by=relay,
        )

    def _outage(self, m: Message) -> tuple[str | None, datetime | None]:
        """The error and the next attempt of the destination that the message waits for."""
        if m.held == Held.WAITING or not (m.destination == "" or m.held == Held.PARKED or m.deferrals):
            return None, None
        failing = {name: row for name, row in self._tables.destinations.items() if row.override.last_error is not None}
        if m.destination:
            row = failing.get(m.destination)
            return (row.override.last_error, row.next_attempt_at) if row else (None, None)
        # Not routed yet: it waits for all of them while no relay can send anywhere.
        states = [relay.breakers for relay in self._tables.alive_relays()]
        if any(state == "closed" for breakers in states for state in breakers.values()):
            return None, None
        shut = [row for name, row in failing.items() if any(name in breakers for breakers in states)]
        first = min(shut, key=lambda row: row.next_attempt_at or self._tables.now(), default=None)
        return (first.override.last_error, first.next_attempt_at) if first else (None, None)

    def _in_flight_at(self, identity: Identity) -> str | None:
        """The relay that has a message in flight: its label and its id."""
        for relay in self._tables.alive_relays():
            if any((one.event_id, one.destination) == identity for one in relay.in_flight):
                return f"{relay.registration.name} {relay.registration.id}".strip()
        return None


def delivered(row: StoredDelivery) -> EventDetail:
    """A row of the history with its content."""
    return _detail(row.stored, EventState.PUBLISHED)._replace(published_at=row.published_at, seconds=row.seconds)


def dead_letter_detail(number: int, row: StoredDeadLetter) -> EventDetail:
    """A dead letter with its content."""
    return _detail(row.stored, EventState.DEAD_LETTERED)._replace(
        last_error=row.error,
        dead_letter_id=number,
        first_failed_at=row.stored.first_failed_at,
        dead_lettered_at=row.dead_lettered_at,
    )


def _detail(stored: StoredMessage, state: EventState) -> EventDetail:
    m = stored.message
    return EventDetail(
        id=m.id,
        event_id=m.event_id,
        destination=m.destination,
        state=state,
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
        dead_letter_id=None,
        first_failed_at=None,
        dead_lettered_at=None,
    )


def _listed(detail: EventDetail) -> ListedEvent:
    return ListedEvent._make(getattr(detail, field) for field in ListedEvent._fields)


def _fits(event: ListedEvent, wanted: EventFilter) -> bool:
    return (
        wanted.status in (None, event.status)
        and wanted.state in (None, event.state)
        and wanted.event_type in (None, event.event_type)
        and wanted.key in (None, event.key)
        and wanted.destination in (None, event.destination)
        and (wanted.since is None or event.recorded_at >= wanted.since)
        and (wanted.error is None or wanted.error in (event.last_error or ""))
        and (not wanted.undelivered or event.state in UNDELIVERED)
    )


def _is_of(detail: EventDetail, aggregate_type: str | None, aggregate_id: str | None) -> bool:
    return aggregate_type in (None, detail.aggregate_type) and aggregate_id in (None, detail.aggregate_id)


def stored_state(m: Message) -> EventState:
    """The state of a pending message that is not in flight."""
    if m.held is not None:
        return EventState(m.held)
    if m.available_at is None:
        return EventState.READY
    return EventState.RETRYING if m.failures else EventState.DELAYED
