"""Lists of events, and everything known of one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pillarbox.admin.listing import (
    EventDetail,
    EventFilter,
    EventPage,
    EventReport,
    Failure,
    FoundEvent,
    ListedEvent,
    Position,
    event_page,
    rows_to_scan,
)
from pillarbox.admin.requests import OpenRequest
from pillarbox.admin.states import STORED, EventState
from pillarbox.core.message import EARLIEST, LATEST, Status
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.admin.engine import LAST, Engine, ResultRow, decode_optional_time

_END = Position(LATEST, LAST, "")
_INDEXED = frozenset(STORED) - {EventState.BLOCKED}
"""States of pending messages that have an index, but not in the order of recording."""


class SqlEvents:
    """See `pillarbox.admin.listing.Events`. One statement per page; one more to count a state."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._story = [engine.statement(name) for name in ("show_event", "show_failures", "show_requests")]

    async def list(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        by_state = wanted.state is not None and wanted.state in _INDEXED and await self._is_small(wanted.state)
        statement = self._engine.statement("list_events", *_variants(wanted, by_state=by_state))
        # Only the message table has these.
        scanned = wanted.state in _INDEXED and not by_state
        more = scanned + (wanted.status in (Status.PENDING, Status.PROCESSING))
        if after is not None and after.recorded_at == LATEST:
            # A time that cannot be decoded does not tell where its row was: go on with those that can.
            after = after._replace(recorded_at=LATEST - timedelta(microseconds=1))
        recorded_at, number, destination = wanted.after(after) or _END
        aggregate_type, aggregate_id = wanted.aggregate_parts
        given = {
            "recorded_at": recorded_at,
            "id": number,
            "after_destination": destination,
            "since": wanted.since or EARLIEST,
            "status": wanted.status,
            "type": wanted.event_type,
            "key": wanted.key,
            "destination": wanted.destination,
            "aggregate_type": aggregate_type,
            "aggregate_id": aggregate_id,
            "error": wanted.error,
            "state": wanted.state,
            "beyond": COUNTED + 1,
            "most": limit + 1,
            "waiting": rows_to_scan(limit, asked=wanted.asked + more, answered=False) if wanted.waiting else 0,
            "delivered": rows_to_scan(limit, asked=wanted.asked, answered=wanted.index is not None)
            if wanted.delivered
            else 0,
            "dead": rows_to_scan(limit, asked=wanted.asked, answered=False) if wanted.dead else 0,
        }
        rows = await self._engine.read(statement, given)
        return event_page([self._found(*row) for row in rows], limit=limit)

    async def _is_small(self, state: EventState) -> bool:
        """Whether so few messages are in this state that a page reads all of them, instead of scanning all states."""
        variants = () if state is EventState.READY else (state,)
        [(_, complete)] = await self._engine.read(
            self._engine.statement("count_state", *variants), {"beyond": COUNTED + 1}
        )
        return bool(complete)

    async def show(self, event_id: str) -> EventReport:
        events, failures, requests = await self._engine.read_all(self._story, {"event_id": event_id})
        decode_time = self._engine.decode_time
        return EventReport(
            [detail_of(self._engine, row) for row in events],
            [
                Failure(destination, attempt, bool(counted), error, decode_time(at), seconds)
                for destination, attempt, counted, error, at, seconds in failures
            ],
            [OpenRequest._make([*facts, decode_time(requested_at)]) for *facts, requested_at in requests],
        )

    def _found(self, *facts: Any) -> FoundEvent:
        *row, wanted, edge = facts
        event = ListedEvent(*row)
        event = event._replace(
            state=EventState(event.state),
            recorded_at=self._engine.decode_time(event.recorded_at),
            last_attempt_at=decode_optional_time(self._engine, event.last_attempt_at),
            next_retry_at=decode_optional_time(self._engine, event.next_retry_at),
            published_at=decode_optional_time(self._engine, event.published_at),
        )
        return FoundEvent(event, bool(wanted), bool(edge))


def detail_of(engine: Engine, row: ResultRow) -> EventDetail:
    """A detail from a row whose columns are its fields."""
    detail = EventDetail(*row)
    return detail._replace(
        state=EventState(detail.state),
        occurred_at=engine.decode_time(detail.occurred_at),
        recorded_at=engine.decode_time(detail.recorded_at),
        published_at=decode_optional_time(engine, detail.published_at),
        last_attempt_at=decode_optional_time(engine, detail.last_attempt_at),
        next_retry_at=decode_optional_time(engine, detail.next_retry_at),
        locked_at=decode_optional_time(engine, detail.locked_at),
        first_failed_at=decode_optional_time(engine, detail.first_failed_at),
        dead_lettered_at=decode_optional_time(engine, detail.dead_lettered_at),
    )


def _variants(wanted: EventFilter, *, by_state: bool) -> Iterator[str]:
    if wanted.index is not None:
        yield f"of_{wanted.index}"
    if wanted.state is EventState.BLOCKED or wanted.status is Status.FAILED:
        yield "blocked"
    elif wanted.state is EventState.IN_FLIGHT or wanted.status is Status.PROCESSING:
        yield "in_flight"
    elif by_state and wanted.state is not None:
        yield wanted.state
