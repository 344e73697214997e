"""What a handler is given: the event, and the circumstances of this call.

A view on the message, made for every call: it holds references and decodes nothing until asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pillarbox.core.text import Upcast, decoded
from pillarbox.core.transport import Outgoing

_UNREAD = object()


class HandlerContext(NamedTuple):
    """The circumstances of one call."""

    attempt: int
    """Which try this is, from 1; those that an outage ended count."""
    headers: Mapping[str, str]
    epoch: int
    """Grows whenever the events of this key change hands: a handler that guards something of its own may refuse what
    comes with a lower one than it has seen."""
    destination: str


class ReceivedEvent:
    """An event as its handler sees it; read-only."""

    __slots__ = ("_out", "_payload", "_upcast")

    def __init__(self, out: Outgoing, upcast: Upcast | None = None) -> None:
        self._out = out
        self._upcast = upcast
        self._payload = _UNREAD

    @property
    def event_id(self) -> str:
        """The same on every try: whoever must not act twice remembers it."""
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
        """Events of one key come one after another, in order."""
        return self._out.message.key

    @property
    def payload(self) -> Any:
        """JSON as Python values, upcast where there is an upcaster; anything else as bytes.

        Decoded when first asked for. Raises PermanentError for a payload that says JSON and is none.
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
        """The version it was recorded with, whatever `payload` was upcast to."""
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
