"""The arguments of a handler: the event, and the context of the call.

The event is a view of the message, created for every call: it decodes the payload on first access.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pillarbox.core.text import Upcast, decoded
from pillarbox.core.transport import Outgoing

_UNREAD = object()


class HandlerContext(NamedTuple):
    """The context of one call."""

    attempt: int
    """The number of this send, from 1; attempts and deferrals count."""
    headers: Mapping[str, str]
    epoch: int
    """A fencing token: it grows whenever another relay takes over the events of this key. A handler may reject events
    with a lower epoch than it has seen."""
    destination: str


class ReceivedEvent:
    """An event as its handler receives it; read-only."""

    __slots__ = ("_out", "_payload", "_upcast")

    def __init__(self, out: Outgoing, upcast: Upcast | None = None) -> None:
        self._out = out
        self._upcast = upcast
        self._payload = _UNREAD

    @property
    def event_id(self) -> str:
        """The same on every attempt: handlers detect duplicates by it."""
        return self._out.message.event_id

    @property
    def event_type(self) -> str:
        return self._out.message.event_type

    @property
    def aggregate_type(self) -> str | None:
        return self._out.message.aggregate_type

    @property
    def aggregate_id(self) -> str | None:
        return self._out.message.aggregate_id

    @property
    def key(self) -> str | None:
        """The ordering key: events of one key are handled one after another, in order."""
        return self._out.message.key

    @property
    def payload(self) -> Any:
        """JSON as Python values, upcast if there is an upcaster; any other content type as bytes.

        Decoded on first access. Raises PermanentError for invalid JSON.
        """
        if self._payload is _UNREAD:
            self._payload = self._decoded()
        return self._payload

    @property
    def payload_bytes(self) -> bytes:
        """The payload as it was sent."""
        return self._out.body

    @property
    def content_type(self) -> str:
        return self._out.content_type

    @property
    def headers(self) -> Mapping[str, str]:
        return self._out.headers

    @property
    def schema_version(self) -> int:
        """The version with which the event was recorded; `payload` may be upcast to a later one."""
        return self._out.message.schema_version

    @property
    def correlation_id(self) -> str | None:
        return self._out.message.correlation_id

    @property
    def causation_id(self) -> str | None:
        return self._out.message.causation_id

    @property
    def trace_id(self) -> str | None:
        return self._out.message.trace_id

    @property
    def occurred_at(self) -> datetime:
        return self._out.message.occurred_at

    def __repr__(self) -> str:
        return f"<ReceivedEvent {self.event_type} {self.event_id}>"

    def _decoded(self) -> Any:
        return decoded(
            self._out.body,
            self._out.content_type,
            event_id=self.event_id,
            event_type=self.event_type,
            version=self.schema_version,
            upcast=self._upcast,
        )
