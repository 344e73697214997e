"""Validates what is written to the inbox, and explains a failed write.

As with recording, only failures that concern the inbox become errors of Pillarbox. All others pass as the driver raised
them, because callers retry their transaction on exactly those types.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pillarbox.connections import driver_errors
from pillarbox.core.errors import ConfigurationError, InboxError, PillarboxError, RecordError, SchemaError
from pillarbox.core.event import LONGEST_TEXT, check_text
from pillarbox.core.row import InboxRecord
from pillarbox.statements import Names


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
        check_text("event_id", event_id, LONGEST_TEXT)
    except RecordError as error:
        raise InboxError(f"{error}; consumer {consumer} cannot detect duplicates without a valid id") from None
    return InboxRecord(consumer, event_id)


def check_consumer(consumer: object) -> None:
    """Raise ConfigurationError for an invalid consumer name."""
    try:
        check_text("consumer", consumer, LONGEST_TEXT)
    except RecordError as error:
        raise ConfigurationError(f"{error}; choose a name that stays the same across releases") from None


class InboxWrite(NamedTuple):
    """A write to the inbox, and the privileges that it needs."""

    action: str
    table: str
    privileges: str


ADMIT = InboxWrite("admit events", "inbox", "INSERT")
ADD_STATISTICS = InboxWrite("write consumer statistics", "inbox_statistics", "SELECT, INSERT, UPDATE")


def explain(error: Exception, names: Names, write: InboxWrite) -> PillarboxError | None:
    """The error to raise in place of the driver's; None: let the driver's pass."""
    if driver_errors.tables_missing(error):
        reason = driver_errors.driver_message(error)
        return SchemaError(f"the inbox's table is missing or too old ({reason}); run `pillarbox schema apply`")
    match driver_errors.sqlstate(error):
        case "42501":
            return _not_allowed(error, names, write)
        case "25P02":
            return InboxError("cannot admit an event: the transaction has already failed; roll back first")
        case _:
            return None


def _not_allowed(error: Exception, names: Names, write: InboxWrite) -> InboxError:
    table = names.qualified(names.prefix + write.table)
    reason = driver_errors.driver_message(error)
    return InboxError(
        f"the role may not {write.action} ({reason}); GRANT {write.privileges} ON {table} to it, and "
        f'USAGE ON SCHEMA "{names.schema}"'
    )
