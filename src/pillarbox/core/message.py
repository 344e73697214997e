"""A message: an event in the outbox, for one destination once it is routed.

    ready ──────────────── held is None, available_at is None: the next fetch may bring it
    scheduled ──────────── held is None, available_at set: a delayed event (no attempt yet) or a retry
    waiting ────────────── held = waiting: an earlier message of its key is pending
    parked ─────────────── held = parked: its destination is unavailable; the first of its key, or without key
    blocked ────────────── held = blocked: dead-lettered with `on_exhausted = "block"`; an operator must decide; FAILED

Within a key, and per destination, a message waits for every earlier one that is a retry, due, or held; an unrouted
message counts for every destination. A delayed event that is not due holds back no other event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple, cast

EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""What a store returns for a time before Python's calendar begins, or for an invalid time."""
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""What a store returns for a time after Python's calendar ends. `record` rejects both."""
_ENDS = (EARLIEST, LATEST)


class Status(StrEnum):
    """The states of an event that operators see."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"


class Held(StrEnum):
    """Why a message is held back."""

    WAITING = "waiting"
    PARKED = "parked"
    BLOCKED = "blocked"


class Message(NamedTuple):
    """One message as a store reads it.

    A named tuple, not a dataclass: the relay creates one per event from a database row (0.5 µs instead of 2.5). The
    order of the fields is the order of the columns in the reads of every store.
    """

    id: int
    """The sequence; copies of one event for several destinations share it."""
    lane: int
    event_id: str
    destination: str
    """Its destination; '' until a route is found."""
    event_type: str
    aggregate_type: str | None
    aggregate_id: str | None
    key: str | None
    """The ordering key; None: no order."""
    payload: bytes
    content_type: str
    headers_json: str
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: datetime
    recorded_at: datetime
    available_at: datetime | None
    held: str | None
    attempts: int
    deferrals: int
    must_wait: bool
    """An earlier message of its key is pending (for '' as destination: for any destination): do not send it yet."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, decoded on each access."""
        decoded: dict[str, str] = json.loads(self.headers_json)
        return decoded

    @property
    def fault(self) -> str | None:
        """Why no transport can send the stored message; None for every message that `record` accepted."""
        if self.occurred_at not in _ENDS and self.recorded_at not in _ENDS and self.available_at not in _ENDS:
            return None
        beyond = [name for name in ("occurred_at", "recorded_at", "available_at") if getattr(self, name) in _ENDS]
        return (
            f"{' and '.join(beyond)} cannot be decoded: not between the years 1 and 9999; the dead letter has the "
            "nearest valid time; correct the producer, then retry or discard it"
        )

    @property
    def size(self) -> int:
        """Bytes of payload, headers and the texts whose length a plain INSERT does not limit: for limits in bytes."""
        headers = self.headers_json
        size = len(self.payload) + (len(headers) if headers.isascii() else _bytes_of(headers))
        if self.correlation_id is not None:
            size += _bytes_of(self.correlation_id)
        if self.causation_id is not None:
            size += _bytes_of(self.causation_id)
        if self.trace_id is not None:
            size += _bytes_of(self.trace_id)
        return size

    def without_content(self) -> Message:
        """The same message without payload, headers and other texts that count for its size."""
        return self._replace(payload=b"", headers_json="{}", correlation_id=None, causation_id=None, trace_id=None)

    @property
    def failures(self) -> int:
        """Sends that failed so far: attempts and deferrals."""
        return self.attempts + self.deferrals

    @property
    def identity(self) -> tuple[str, str]:
        """Event id and destination, unique among pending messages."""
        return self.event_id, self.destination

    def to(self, destination: str) -> Message:
        """The same message with its resolved destination."""
        return self._replace(destination=destination)

    @property
    def position(self) -> tuple[int, str]:
        """Sequence and destination: what a fetch leaves out while the message is in flight."""
        return self.id, self.destination


message_of: Callable[[Iterable[Any]], Message] = partial(cast(Any, tuple).__new__, Message)
"""Creates a message from its fields, as `Message._make` does, without checking their number."""


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


class KeyQueue(NamedTuple):
    """An ordering queue: the messages of a key for one destination, in their lane."""

    lane: int
    key: str
    destination: str


class EarlierQuery(NamedTuple):
    """Asks whether a message earlier than `id` is pending in this ordering queue."""

    lane: int
    key: str
    destination: str
    id: int
