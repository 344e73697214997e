"""Validates what is written to the inbox: the name of a consumer and the id of an event."""

from __future__ import annotations

from typing import Protocol

from pillarbox.core.errors import ConfigurationError, InboxError, RecordError
from pillarbox.core.event import MAX_TEXT_BYTES, check_text
from pillarbox.core.rows import InboxRecord


class Identified(Protocol):
    """An object with an event id: a recorded event, a received event, or an object of the application."""

    @property
    def event_id(self) -> str: ...


def record_of(consumer: str, event: str | Identified) -> InboxRecord:
    """The inbox record of an event.

    Raises ConfigurationError for an invalid consumer name, InboxError for an event without a valid id.
    """
    check_consumer(consumer)
    event_id = event if isinstance(event, str) else getattr(event, "event_id", None)
    if event_id is None:
        raise InboxError(f"{type(event).__name__} has no event_id; pass the id of the event, or an object that has one")
    try:
        # As long as a message id may be on any broker: not every event was recorded here.
        check_text("event_id", event_id, MAX_TEXT_BYTES)
    except RecordError as error:
        raise InboxError(f"{error}; consumer {consumer} cannot detect duplicates without a valid id") from None
    return InboxRecord(consumer, event_id)


def check_consumer(consumer: object) -> None:
    """Raise ConfigurationError for an invalid consumer name."""
    try:
        check_text("consumer", consumer, MAX_TEXT_BYTES)
    except RecordError as error:
        raise ConfigurationError(f"{error}; choose a name that stays the same across releases") from None
