"""Lists of events: one statement per page, planned anew each time for the filter that was given."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pillarbox.admin.listing import (
    EventDetail,
    EventFilter,
    EventPage,
    Failure,
    FoundEvent,
    ListedEvent,
    Position,
    Story,
    event_page,
    walk,
)
from pillarbox.admin.requests import OpenRequest
from pillarbox.core.message import EARLIEST, LATEST, Status
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements

# The driver takes these for the ends of time.
EVER, NEVER = EARLIEST, LATEST
_LAST = 2**63 - 1


class PostgresEvents:
    """See `pillarbox.admin.listing.Events`. Its connection plans each page anew."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements
        self._show = statements.get("show_event")
        self._failures = statements.get("show_failures")
        self._requests = statements.get("show_requests")

    async def list(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        sql = self._statements.get("list_events", *_variants(wanted))
        # Nothing but the hot table knows of these.
        more = wanted.retrying + (wanted.status in (Status.PENDING, Status.PROCESSING))
        if after is not None and after.recorded_at == LATEST:
            # A time that cannot be decoded does not tell where its row was: go on with those that can.
            after = after._replace(recorded_at=LATEST - timedelta(microseconds=1))
        rows = await self._connection.fetch(
            sql,
            *(wanted.after(after) or Position(NEVER, _LAST, "")),
            wanted.since or EVER,
            wanted.status,
            wanted.event_type,
            wanted.key,
            wanted.destination,
            wanted.retrying,
            limit + 1,
            walk(limit, asked=wanted.asked + more, answered=False) if wanted.waiting else 0,
            walk(limit, asked=wanted.asked, answered=wanted.index is not None) if wanted.delivered else 0,
            walk(limit, asked=wanted.asked, answered=False) if wanted.dead else 0,
            *wanted.aggregate_parts,
            wanted.error,
        )
        return event_page([_event(row) for row in rows], limit=limit)

    async def show(self, event_id: str) -> Story:
        events = await self._connection.fetch(self._show, event_id)
        failures = await self._connection.fetch(self._failures, event_id)
        requests = await self._connection.fetch(self._requests, event_id)
        return Story(
            [detail_of(row) for row in events],
            [Failure._make(row) for row in failures],
            [OpenRequest._make(row) for row in requests],
        )


def detail_of(row: Iterable[Any]) -> EventDetail:
    """A detail from a row whose columns are its fields."""
    detail = EventDetail._make(row)
    return detail._replace(status=Status(detail.status))


def _event(row: Iterable[Any]) -> FoundEvent:
    *facts, wanted, edge = row
    event = ListedEvent._make(facts)
    return FoundEvent(event._replace(status=Status(event.status)), wanted, edge)


def _variants(wanted: EventFilter) -> list[str]:
    variants = [] if wanted.index is None else [f"of_{wanted.index}"]
    if wanted.blocked or wanted.status is Status.FAILED:
        return [*variants, "blocked"]
    return [*variants, "in_flight"] if wanted.status is Status.PROCESSING else variants
