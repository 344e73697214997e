"""Events in pages: filters, positions, and how rows become a page.

A page continues from a position, never from a row count. It is put together from several tables. A store reads a
bounded number of rows of each table for one page, whatever the filter: if that bound is reached first, the page is
short or empty and still has the position to continue from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, unquote

from pillarbox.admin.requests import OpenRequest
from pillarbox.admin.states import UNDELIVERED, EventState
from pillarbox.core.clock import timestamp
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.event import MAX_HEADER_BYTES
from pillarbox.core.message import Status

T = TypeVar("T")

ROWS_SCANNED = 5_000
"""Rows of one table that are scanned for one page with a filter that no index answers."""

_TYPE = re.compile(r"(?:\\[:\\]|[^:])*")
_ESCAPED = re.compile(r"\\([:\\])")
_TO_ESCAPE = re.compile(r"[:\\]")

UNREADABLE = "(cannot be decoded)"
"""The name under which headers are shown that are too deep or too long to decode."""


class Position(NamedTuple):
    """The position of an event in a list: time of recording, sequence, destination."""

    recorded_at: datetime
    id: int
    destination: str

    def __str__(self) -> str:
        return f"{timestamp(self.recorded_at)},{self.id},{quote(self.destination, safe='')}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Return the position that `str` wrote. Raises ConfigurationError."""
        try:
            recorded_at, sequence, destination = text.split(",")
            at = datetime.fromisoformat(recorded_at)
            position = cls(at.astimezone(UTC), int(sequence), unquote(destination, errors="strict"))
            position.destination.encode()  # a lone surrogate
            if at.utcoffset() is None or not 0 <= position.id < 2**63 or "\0" in position.destination:
                raise ValueError
        except (ValueError, OverflowError):
            raise ConfigurationError(
                f"{text!r} is not a position in a list: use the position that the last page returned"
            ) from None
        return position


def split_aggregate(text: str) -> tuple[str, str | None]:
    r"""Return type and id of TYPE:ID; id None: there is only a type. In the type, \: is a colon and \\ a backslash; any
    other backslash stays."""
    kind: str = _TYPE.findall(text)[0]
    one = text[len(kind) + 1 :] if len(kind) < len(text) else None
    return _ESCAPED.sub(r"\1", kind), one


def join_aggregate(kind: str, one: str) -> str:
    """Return TYPE:ID with each colon and backslash of the type escaped, so that one aggregate has one text."""
    escaped = _TO_ESCAPE.sub(r"\\\g<0>", kind)
    return f"{escaped}:{one}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to list; None matches all."""

    status: Status | None = None
    event_type: str | None = None
    key: str | None = None
    destination: str | None = None
    aggregate: str | None = None
    """An aggregate type, as in ORDER, or one aggregate, as in ORDER:42; see `split_aggregate`."""
    since: datetime | None = None
    """Recorded at that time or later."""
    until: datetime | None = None
    """Recorded before that time."""
    error: str | None = None
    """A part of the last error, verbatim."""
    state: EventState | None = None
    undelivered: bool = False
    """Only pending and blocking events: neither delivered nor dead letters."""

    @property
    def index(self) -> Literal["key", "type"] | None:
        """The index by which the history is searched; the message table has no such index."""
        return "key" if self.key is not None else "type" if self.event_type is not None else None

    @property
    def asked(self) -> int:
        """How many of key, type, destination, aggregate and error are given."""
        given = (self.key, self.event_type, self.destination, self.aggregate, self.error)
        return sum(value is not None for value in given)

    @property
    def aggregate_parts(self) -> tuple[str | None, str | None]:
        """Type and id of the aggregate; None for a part that is not given."""
        kind, one = split_aggregate(self.aggregate or "")
        return kind or None, one or None

    def __post_init__(self) -> None:
        if self.aggregate is not None:
            # An empty part, such as that of an unset variable of a script, would match more than was meant.
            kind, one = split_aggregate(self.aggregate)
            if not kind or one == "":
                raise ConfigurationError(
                    f"{self.aggregate!r} is not an aggregate: write its type, such as ORDER, or its type and its id, "
                    "such as ORDER:42"
                )

    def after(self, position: Position | None) -> Position | None:
        """Return where a list continues: at the position, or where `until` lets it begin."""
        if self.until is None:
            return position
        begin = Position(self.until, 0, "")
        return begin if position is None else min(begin, position)

    @property
    def waiting(self) -> bool:
        """Whether the message table can have matching events."""
        return self.status is not Status.PUBLISHED and (self.state is None or self.state in UNDELIVERED)

    @property
    def delivered(self) -> bool:
        """Whether the history can have matching events."""
        return self.status in (None, Status.PUBLISHED) and self._allows(EventState.PUBLISHED)

    @property
    def dead(self) -> bool:
        """Whether dead letters can match."""
        return self.status in (None, Status.FAILED) and self._allows(EventState.DEAD_LETTERED)

    def _allows(self, final: EventState) -> bool:
        return self.state in (None, final) and not self.undelivered


class ListedEvent(NamedTuple):
    """An event in a list."""

    recorded_at: datetime
    id: int
    destination: str
    event_id: str
    state: EventState
    event_type: str
    key: str | None
    attempts: int
    retry_count: int
    last_error: str | None
    last_attempt_at: datetime | None
    next_retry_at: datetime | None
    published_at: datetime | None

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def position(self) -> Position:
        return Position(self.recorded_at, self.id, self.destination)


class EventPage(NamedTuple):
    """A page of events, the newest first."""

    events: list[ListedEvent]
    after: Position | None
    """Where the next page continues; None if there is none."""


class Failure(NamedTuple):
    """A failed send."""

    destination: str
    attempt: int
    counted: bool
    error: str
    attempted_at: datetime
    seconds: float | None
    """How long the send took; None if unknown, or if nothing was sent."""


class EventDetail(NamedTuple):
    """Everything known of one event on its way to one destination."""

    id: int
    event_id: str
    destination: str
    state: EventState
    event_type: str
    aggregate_type: str | None
    aggregate_id: str | None
    key: str | None
    payload: bytes
    content_type: str
    headers_json: str
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: datetime
    recorded_at: datetime
    published_at: datetime | None
    seconds: float | None
    """How long the successful send took; None if unknown, or if nothing was sent."""
    attempts: int
    retry_count: int
    last_error: str | None
    last_attempt_at: datetime | None
    next_retry_at: datetime | None
    locked_by: str | None
    locked_at: datetime | None
    dead_letter_id: int | None
    """The number of its dead letter, if it is one."""
    first_failed_at: datetime | None
    dead_lettered_at: datetime | None

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; if they cannot be decoded, their beginning under `UNREADABLE`. Never raises.

        `record` accepts text only. Of values that plain SQL inserted, numbers, true, false and null stay as they are;
        other values become text.
        """
        try:
            decoded = json.loads(self.headers_json)
            return {_encodable(name): _shown(value) for name, value in decoded.items()}
        except (ValueError, RecursionError, AttributeError):
            return {UNREADABLE: _encodable(self.headers_json[:MAX_HEADER_BYTES])}


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, (list, dict)) or (isinstance(value, float) and not isfinite(value)):
        return _encodable(json.dumps(value, ensure_ascii=False))
    return value


def _encodable(text: str) -> str:
    """Escape lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text.encode(errors="backslashreplace").decode()


class EventReport(NamedTuple):
    """An event, once per destination; its latest failed sends, the last one first; its open requests, in order."""

    events: list[EventDetail]
    failures: list[Failure]
    requests: list[OpenRequest]


class Events(Protocol):
    """Lists and shows events. Each call reads one snapshot and a bounded number of rows, in a constant number of
    statements."""

    async def list(self, wanted: EventFilter, *, limit: int, after: Position | None = None) -> EventPage:
        """Return one page of pending, delivered and dead-lettered events by recording time, the newest first."""
        ...

    async def show(self, event_id: str) -> EventReport:
        """Return everything known of one event; nothing if the event is unknown."""
        ...


class FoundEvent(NamedTuple):
    """A row that a store scanned for a page of events."""

    event: ListedEvent
    wanted: bool
    edge: bool
    """The last row of its table that was scanned: the rows after it are unknown."""


def event_page(found: Iterable[FoundEvent], *, limit: int) -> EventPage:
    """Return the page that scanned rows of several tables make; see `page_of`."""
    newest_first = sorted(found, key=lambda row: row.event.position, reverse=True)
    events, last = page_of(newest_first, limit=limit)
    return EventPage(events, None if last is None else last.position)


def page_of(found: Iterable[tuple[T, bool, bool]], *, limit: int) -> tuple[list[T], T | None]:
    """Return the rows of a page, and the row after which the next page continues; None if there is no next page.

    Each scanned row comes with whether it matches and whether it is the last scanned row of its table. Each table has
    one matching row more than the limit, if there is one.
    """
    rows: list[T] = []
    for row, wanted, edge in found:
        if wanted and len(rows) == limit:
            return rows, rows[-1]
        if wanted:
            rows.append(row)
        if edge:
            return rows, row
    return rows, None


def rows_to_scan(limit: int, *, asked: int, answered: bool) -> int:
    """Return how many rows to scan for a page: one more than the page, if an index answers all filters."""
    return limit + 1 if asked <= answered else max(ROWS_SCANNED, limit + 1)
