"""Rows that applications write in their own transactions: recorded events, and the inbox records of consumers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from pillarbox.core.message import Message
from pillarbox.core.statistics import ConsumerStatistics


class EventRow(NamedTuple):
    """An encoded event, in the order of the columns of `record`; None: the default of the column."""

    event_id: str
    destination: str
    event_type: str
    aggregate_type: str | None
    aggregate_id: str | None
    ordering_key: str | None
    payload: bytes
    content_type: str
    headers: str
    """JSON text of an object."""
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: datetime | None
    available_at: datetime | None

    @property
    def key(self) -> str | None:
        """The ordering key, as the tables derive it."""
        if self.ordering_key is not None:
            return self.ordering_key
        if self.aggregate_type is not None and self.aggregate_id is not None:
            return f"{self.aggregate_type}:{self.aggregate_id}"
        return self.aggregate_id

    def message(self, *, id: int, lane: int, recorded_at: datetime) -> Message:
        """The message that a relay fetches for this row before the first send."""
        return Message(
            id=id,
            lane=lane,
            event_id=self.event_id,
            destination=self.destination,
            event_type=self.event_type,
            aggregate_type=self.aggregate_type,
            aggregate_id=self.aggregate_id,
            key=self.key,
            payload=self.payload,
            content_type=self.content_type,
            headers_json=self.headers,
            schema_version=self.schema_version,
            correlation_id=self.correlation_id,
            causation_id=self.causation_id,
            trace_id=self.trace_id,
            occurred_at=self.occurred_at or recorded_at,
            recorded_at=recorded_at,
            available_at=self.available_at,
            held=None,
            attempts=0,
            deferrals=0,
            must_wait=False,
        )


@runtime_checkable
class EventTransaction(Protocol):
    """A transaction that appends events itself; `Outbox.record` and `arecord` call it instead of running SQL.

    Transactions of the memory store do so, and those of engines of other distributions.
    """

    def append_rows(self, rows: Sequence[EventRow], *, ignore_duplicates: bool) -> None:
        """Add rows, which become visible when the transaction commits. Raises DuplicateEventError, adding none."""
        ...


@runtime_checkable
class AsyncEventTransaction(Protocol):
    """`EventTransaction` on a driver that is awaited, for `Outbox.arecord`."""

    async def aappend_rows(self, rows: Sequence[EventRow], *, ignore_duplicates: bool) -> None:
        """`EventTransaction.append_rows`, awaited."""
        ...


INBOX_RETENTION = "120 days"
"""The default retention of inbox records: longer than `REDELIVERY_WINDOW`."""
REDELIVERY_WINDOW = "90 days"
"""The default of the longest time after which an event may be redelivered: an operator may retry a dead letter for as
long as it is kept."""


class InboxRecord(NamedTuple):
    """Records that a consumer has processed an event: it skips duplicates as long as the record is kept."""

    consumer: str
    event_id: str


@runtime_checkable
class InboxTransaction(Protocol):
    """A transaction that writes inbox records itself; the inbox calls it instead of running SQL."""

    def admit_record(self, record: InboxRecord) -> bool:
        """Write an inbox record as part of the transaction; False if there is one already.

        While another open transaction has written the same, wait for its end, or raise InboxError: it may still roll
        back.
        """
        ...

    def add_statistics(self, statistics: ConsumerStatistics) -> None:
        """Add to the consumer statistics as part of the transaction."""
        ...


@runtime_checkable
class AsyncInboxTransaction(Protocol):
    """`InboxTransaction` on a driver that is awaited, for `Inbox.aadmit`."""

    async def aadmit_record(self, record: InboxRecord) -> bool:
        """`InboxTransaction.admit_record`, awaited."""
        ...

    async def aadd_statistics(self, statistics: ConsumerStatistics) -> None:
        """`InboxTransaction.add_statistics`, awaited."""
        ...
