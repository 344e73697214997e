"""Events for the tests, identified by their ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from pillarbox.core.event import Event

HOUR = 3600.0


def event(event_id: str, key: str | None = None, **more: Any) -> Event:
    """Return an event with that id; its payload is its id by default."""
    more.setdefault("payload", event_id.encode())
    return Event("thing.happened", more.pop("payload"), event_id=event_id, key=key, **more)


def keyed_events(key: str, *event_ids: str, **more: Any) -> list[Event]:
    """Return several events of one key."""
    return [event(event_id, key, **more) for event_id in event_ids]


def at(seconds: float) -> datetime:
    """Return the time that many seconds from now; a negative number is in the past."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


def digest(payload: bytes) -> str:
    return sha256(payload).hexdigest()
