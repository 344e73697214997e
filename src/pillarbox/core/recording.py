"""What an outbox announces: a frozen value, like those of the relay and the consumer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pillarbox.core.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRecorded:
    """Events were appended to the caller's transaction, which may still be rolled back."""

    events: tuple[Event, ...]


RecordObserver = Callable[[EventsRecorded], None]
"""Must neither raise nor block: it is called within the caller's transaction."""
