"""Lists of events: one statement per page, on one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
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
from pillarbox.core.message import Status
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.moments import moment, moment_or_none
from pillarbox.stores.sqlite.statements import Statements

EVER = "0000-01-01T00:00:00.000Z"
NEVER = "9999-12-31T23:59:59.999Z"
_LAST = 2**63 - 1


class SqliteEvents:
    """See `pillarbox.admin.listing.Events`."""

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
        after = wanted.after(after)
        aggregate_type, aggregate_id = wanted.aggregate_parts
        given = {
            "recorded_at": written(after.recorded_at) if after else NEVER,
            "id": after.id if after else _LAST,
            "place": after.destination if after else "",
            "since": written(wanted.since) if wanted.since else EVER,
            "status": wanted.status,
            "type": wanted.event_type,
            "key": wanted.key,
            "destination": wanted.destination,
            "aggregate_type": aggregate_type,
            "aggregate_id": aggregate_id,
            "error": wanted.error,
            "retrying": wanted.retrying,
            "most": limit + 1,
            "waiting": walk(limit, asked=wanted.asked + more, answered=False) if wanted.waiting else 0,
            "delivered": walk(limit, asked=wanted.asked, answered=wanted.index is not None) if wanted.delivered else 0,
            "dead": walk(limit, asked=wanted.asked, answered=False) if wanted.dead else 0,
        }
        rows = await self._connection.read(lambda db: db.execute(sql, given).fetchall())
        return event_page([_event(row) for row in rows], limit=limit)

    async def show(self, event_id: str) -> Story:
        given = {"event_id": event_id}

        def work(db: sqlite3.Connection) -> Story:
            events = [detail_of(row) for row in db.execute(self._show, given).fetchall()]
            failures = [Failure._make(row) for row in db.execute(self._failures, given).fetchall()]
            requests = [OpenRequest._make(row) for row in db.execute(self._requests, given).fetchall()]
            return Story(
                events,
                [row._replace(charged=bool(row.charged), attempted_at=moment(row.attempted_at)) for row in failures],
                [row._replace(asked_at=moment(row.asked_at)) for row in requests],
            )

        return await self._connection.read(work)


def written(at: datetime) -> str:
    """A time as the tables have it."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def detail_of(row: Iterable[Any]) -> EventDetail:
    """A detail from a row whose columns are its fields."""
    detail = EventDetail._make(row)
    return detail._replace(
        status=Status(detail.status),
        occurred_at=moment(detail.occurred_at),
        recorded_at=moment(detail.recorded_at),
        published_at=moment_or_none(detail.published_at),
        last_attempt_at=moment_or_none(detail.last_attempt_at),
        next_retry_at=moment_or_none(detail.next_retry_at),
        locked_at=moment_or_none(detail.locked_at),
        first_failed_at=moment_or_none(detail.first_failed_at),
        died_at=moment_or_none(detail.died_at),
    )


def _event(row: Iterable[Any]) -> FoundEvent:
    *facts, wanted, edge = row
    event = ListedEvent._make(facts)
    event = event._replace(
        status=Status(event.status),
        recorded_at=moment(event.recorded_at),
        last_attempt_at=moment_or_none(event.last_attempt_at),
        next_retry_at=moment_or_none(event.next_retry_at),
        published_at=moment_or_none(event.published_at),
    )
    return FoundEvent(event, bool(wanted), bool(edge))


def _variants(wanted: EventFilter) -> list[str]:
    variants = [] if wanted.index is None else [f"of_{wanted.index}"]
    if wanted.blocked or wanted.status is Status.FAILED:
        return [*variants, "blocked"]
    return [*variants, "in_flight"] if wanted.status is Status.PROCESSING else variants
