"""Explains a failed insert and names a remedy.

Only failures that concern the outbox become errors of Pillarbox. All others (a lost connection, a deadlock, a
serialization failure) pass as the driver raised them, because callers retry their transaction on exactly those types.
"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.connections import driver_errors
from pillarbox.core.errors import DuplicateEventError, PillarboxError, RecordError, SchemaError
from pillarbox.core.row import Row
from pillarbox.statements import Names

_MOST_NAMED = 5


def check_distinct(rows: Sequence[Row]) -> None:
    """Raise DuplicateEventError if two events of one call have the same id and destination."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        identity = row.event_id, row.destination
        if identity in seen:
            raise DuplicateEventError(
                f"event {row.event_id} occurs twice in one call, nothing was written; record it once", field="event_id"
            )
        seen.add(identity)


def explain(error: Exception, rows: Sequence[Row], names: Names) -> PillarboxError | None:
    """The error to raise in place of the driver's; None: let the driver's pass."""
    if driver_errors.tables_missing(error):
        return _no_schema(error)
    match driver_errors.sqlstate(error):
        case "23505":
            return _duplicate(rows, driver_errors.detail(error), "; roll the transaction back, or to a savepoint")
        case "42501":
            return _not_allowed(error, names)
        case "23514":
            return _rejected(error)
        case "25P02":
            return RecordError(
                "cannot record: the transaction has already failed; roll back first",
                field="connection",
            )
        case _:
            return _explain_sqlite(error, rows)


def _explain_sqlite(error: Exception, rows: Sequence[Row]) -> PillarboxError | None:
    match driver_errors.sqlite_code(error):
        case "SQLITE_CONSTRAINT_PRIMARYKEY" | "SQLITE_CONSTRAINT_UNIQUE":
            return _duplicate(rows, "", "")
        case "SQLITE_CONSTRAINT_CHECK" | "SQLITE_CONSTRAINT_TRIGGER":
            return _rejected(error)
        case _:
            return None


def _duplicate(rows: Sequence[Row], detail: str, advice: str) -> DuplicateEventError:
    """Names the event if the database does, else all events of the call."""
    duplicates = [row for row in rows if f"=({row.event_id}, {row.destination}) " in detail] or list(rows)
    ids = [row.event_id for row in duplicates]
    named = ", ".join(ids[:_MOST_NAMED]) + (" …" if len(ids) > _MOST_NAMED else "")
    which = f"event {named} is" if len(ids) == 1 else f"one of the events {named} is"
    return DuplicateEventError(
        f'{which} in the outbox already{advice}; duplicate="ignore" would skip it', field="event_id"
    )


def _rejected(error: Exception) -> RecordError:
    """A table may have stricter limits than this outbox, most likely for the size of payloads."""
    return RecordError(
        f"the table rejects an event ({driver_errors.driver_message(error)}); "
        "`pillarbox schema apply` sets its limits: make the event smaller, or raise them",
    )


def _no_schema(error: Exception) -> SchemaError:
    reason = driver_errors.driver_message(error)
    return SchemaError(f"the outbox's tables are missing or too old ({reason}); run `pillarbox schema apply`")


def _not_allowed(error: Exception, names: Names) -> RecordError:
    message = names.qualified(names.prefix + "message")
    return RecordError(
        f"the role may not record ({driver_errors.driver_message(error)}); GRANT INSERT ON {message} to it, and "
        f'USAGE ON SCHEMA "{names.schema}"',
        field="connection",
    )
