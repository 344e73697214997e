"""What may stand on a receipt: a consumer's name and an event's id, both checked before anything is sent."""

from __future__ import annotations

from typing import Protocol

from pillarbox.core.errors import ConfigurationError, InboxError, RecordError
from pillarbox.core.event import LONGEST_TEXT, check_text
from pillarbox.core.row import InboxRecord


class Identified(Protocol):
    """An event as it was recorded, as a handler receives it, or anything of yours that has its id."""

    @property
    def event_id(self) -> str: ...


def record_of(consumer: str, event: str | Identified) -> InboxRecord:
    """Raises ConfigurationError for a name that no consumer can have, InboxError for an event without a usable id."""
    check_consumer(consumer)
    event_id = event if isinstance(event, str) else getattr(event, "event_id", None)
    if event_id is None:
        raise InboxError(f"{type(event).__name__} has no event_id; pass the id of the event, or an object that has one")
    try:
        # As long as a message id may be on any broker: not every event was recorded here.
        check_text("event_id", event_id, LONGEST_TEXT)
    except RecordError as error:
        raise InboxError(f"{error}; without a clean id nobody can tell whether {consumer} had it before") from None
    return InboxRecord(consumer, event_id)


def check_consumer(consumer: object) -> None:
    """Raise ConfigurationError for a name that no consumer can have."""
    try:
        check_text("consumer", consumer, LONGEST_TEXT)
    except RecordError as error:
        raise ConfigurationError(f"{error}; a consumer is named once and keeps its name across releases") from None
