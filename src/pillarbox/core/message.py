"""A message: an event as it is stored and moved.

    ready ──────────────── held is None, available_at is None: the next fetch may bring it
    scheduled ──────────── held is None, available_at set: a delayed event (no attempt yet) or a retry
    waiting ────────────── held = behind: an earlier message of its key is pending
    parked ─────────────── held = aside: its destination is unavailable; the first of its key, or without key
    blocked ────────────── held = blocked: dead-lettered with `on_exhausted = "block"`; an operator must decide; FAILED

Within a key, and per destination ('' counts for all), a message waits for every earlier one that is a retry, due, or
held. A delayed event takes its position in the key when it is due, and holds nothing back before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""What a store returns for a time before Python's calendar begins, or for one that is no time at all."""
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""What a store returns for a time after Python's calendar ends. `record` refuses both."""
_ENDS = (EARLIEST, LATEST)


class Status(StrEnum):
    """The states of an event that operators see."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"


class Held(StrEnum):
    """Why no fetch for ready messages brings a message, although it is not scheduled."""

    BEHIND = "behind"
    ASIDE = "aside"
    BLOCKED = "blocked"


class Message(NamedTuple):
    """One message as a store reads it.

    A named tuple, not a dataclass: it is made once per event on the hot path straight from a database row
    (0.5 µs against 2.5). The order of fields is the order of columns in every store's reads.
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
    tries: int
    behind: bool
    """An earlier message of its key is pending (for '' as destination: for any destination): do not send it yet."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, decoded on each access."""
        decoded: dict[str, str] = json.loads(self.headers_json)
        return decoded

    @property
    def fault(self) -> str | None:
        """Why no transport could send it as it is stored; None for every message that `record` accepted."""
        if self.occurred_at not in _ENDS and self.recorded_at not in _ENDS and self.available_at not in _ENDS:
            return None
        beyond = [name for name in ("occurred_at", "recorded_at", "available_at") if getattr(self, name) in _ENDS]
        return (
            f"{' and '.join(beyond)} cannot be decoded: not between the years 1 and 9999; the dead letter has the "
            "nearest time that can be; correct the producer, then retry or discard it"
        )

    @property
    def size(self) -> int:
        """Bytes of payload, headers and the texts that a plain INSERT may give any length: what it counts for where
        bytes are bounded."""
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
        """The same message without what counts for its size."""
        return self._replace(payload=b"", headers_json="{}", correlation_id=None, causation_id=None, trace_id=None)

    @property
    def failures(self) -> int:
        """Sends that failed so far: attempts and deferrals."""
        return self.attempts + self.tries

    @property
    def identity(self) -> tuple[str, str]:
        """Event id and destination, unique among pending messages."""
        return self.event_id, self.destination

    def to(self, destination: str) -> Message:
        """The same message as the table knows it once its destination is written."""
        return self._replace(destination=destination)

    @property
    def position(self) -> tuple[int, str]:
        """Sequence and destination: what a fetch leaves out while the message is in flight."""
        return self.id, self.destination


message_of: Callable[[Iterable[Any]], Message] = partial(tuple.__new__, Message)  # pyright: ignore[reportUnknownMemberType]
"""Makes a message of its fields. As `Message._make`, without counting them: a store's reads name every one."""


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


class KeyQueue(NamedTuple):
    """An ordering queue: the messages of a key for one destination, in their lane."""

    lane: int
    key: str
    destination: str


class Probe(NamedTuple):
    """A question: is anything earlier than `id` pending in this ordering queue?"""

    lane: int
    key: str
    destination: str
    id: int
