"""What an operator sees of single events, and what he may ask for."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from pillarbox.core.message import Status


class EventRow(NamedTuple):
    """An event as the view `outbox_event` shows it."""

    event_id: str
    destination: str
    status: Status
    event_type: str
    key: str | None
    attempts: int
    retry_count: int
    last_error: str | None
    next_retry_at: datetime | None
    published_at: datetime | None
    locked_by: str | None


class DeadLetter(NamedTuple):
    """A message given up on."""

    id: int
    event_id: str
    destination: str
    event_type: str
    key: str | None
    payload: bytes
    error: str
    attempts: int
    first_failed_at: datetime | None
    died_at: datetime


Action = Literal["retry", "discard", "reschedule", "bury"]
"""Send it now, drop it for good, send it later, or make a dead letter of it so that its key goes on."""


class OpenRequest(NamedTuple):
    """What a person asked for and no relay did yet."""

    action: Action
    destination: str
    delay: float
    asked_by: str
    asked_at: datetime
