"""The protocol of a source: where a consumer receives messages, and how the consumer acknowledges each of them.

    ack      the consumer's transaction is committed: the source deletes the message
    retry    the source delivers it again after a delay and keeps its counts, also across restarts
    reject   the source dead-letters it with the reason

A delivery belongs to the consumer that received it until it is acknowledged. If the consumer crashes or loses its
connection, the source delivers the message again: at least once, never lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message as it was received, not validated; None where the message has no such property."""

    event_id: str | None
    event_type: str | None
    body: bytes = field(repr=False)
    content_type: str | None = None
    correlation_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS, repr=False)
    attempts: int = 0
    """Failed attempts so far that count towards the limit of the retry policy."""
    deferrals: int = 0
    """Failed attempts so far that do not count, because something else was unavailable."""
    destination: str = ""
    """The queue, topic, subject or stream that its producer sent it to, also of a retry and in quarantine; '': unknown.
    Spans show it."""


class Delivery(Protocol):
    """A message in flight, to be acknowledged once by `ack`, `retry` or `reject`.

    Each of them raises UnavailableError if the connection was lost since: then the source delivers the message again.
    """

    @property
    def incoming(self) -> Incoming: ...

    @property
    def quarantined(self) -> bool:
        """Whether several consumers crashed or lost their connection with this message in flight: handle it alone."""
        ...

    @property
    def crashes(self) -> int:
        """How many consumers received it in quarantine and never acknowledged it."""
        ...

    async def ack(self) -> None:
        """Delete the message: it was processed."""
        ...

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        """Have it delivered again after at least `delay` seconds; counts an attempt, or else a deferral.

        Returns when the message is stored as safely as before.
        """
        ...

    async def reject(self, reason: str) -> None:
        """Dead-letter the message. Returns when it is stored as safely as before."""
        ...


class Source(Protocol):
    """Where a consumer receives messages. Use it from one event loop; call `receive` once at a time."""

    async def receive(self) -> Delivery:
        """Wait for the next message; at most as many as the prefetch are in flight.

        Raises UnavailableError while the broker cannot be reached; the next call connects again. Raises
        ConfigurationError if a queue or an exchange differs from the settings in a way that would lose events. Can be
        cancelled without loss.
        """
        ...

    async def connect(self) -> None:
        """Connect and declare now, without waiting for a message. Raises what `receive` raises."""
        ...

    async def aclose(self) -> None:
        """Close the connection; closing twice is fine. Messages in flight are delivered again, to any consumer."""
        ...
