"""An event made ready for its table: encoded, checked, in the order of the columns that a record fills."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from pillarbox.core.message import Message


class Row(NamedTuple):
    """What `record` hands to a database; None lets the table's default decide."""

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
        """What is kept in order, as the tables derive it."""
        if self.ordering_key is not None:
            return self.ordering_key
        if self.aggregate_type is not None and self.aggregate_id is not None:
            return f"{self.aggregate_type}:{self.aggregate_id}"
        return self.aggregate_id

    def message(self, *, id: int, lane: int, recorded_at: datetime) -> Message:
        """The message that a relay reads where a table has this row, recorded then and not sent yet."""
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
            tries=0,
            behind=False,
        )


@runtime_checkable
class InProcessTransaction(Protocol):
    """A transaction of a store that lives in this process; `record` appends to it without SQL."""

    def append_rows(self, rows: Sequence[Row], *, ignore_duplicates: bool) -> None:
        """Add rows, visible to nobody before the transaction commits. Raises DuplicateEventError, adding none."""
        ...


LATELY = 86_400.0
"""Seconds of tallies that are shown, by the hour."""


class ConsumerStatistics(NamedTuple):
    """What a consumer met since it last said so."""

    consumer: str
    handled: int = 0
    """Events that had their effect."""
    repeated: int = 0
    """Events that had it before, and were skipped."""
    failed: int = 0
    """Failures that were charged to an event, which then comes again."""
    given_up: int = 0
    """Events that went to the dead letters."""
    last_error: str | None = None
    failed_ago: float | None = None
    """Seconds since an event last failed or was given up on."""


INBOX_RETENTION = "120 days"
"""How long receipts are kept unless told otherwise: longer than an event may still come again."""
REDELIVERY_WINDOW = "90 days"
"""As long as dead letters are kept unless told otherwise: until then a person may send one again."""


class InboxRecord(NamedTuple):
    """Which consumer, which event."""

    consumer: str
    event_id: str


@runtime_checkable
class InProcessInbox(Protocol):
    """A transaction of a store that lives in this process; receipts and tallies are written to it without SQL."""

    def admit_record(self, receipt: InboxRecord) -> bool:
        """Write a receipt that counts once the transaction commits; False if there is one already.

        Raises InboxError while another open transaction has written the same: it may still roll back.
        """
        ...

    def add_statistics(self, statistics: ConsumerStatistics) -> None:
        """Add what a consumer met, which counts once the transaction commits."""
        ...
