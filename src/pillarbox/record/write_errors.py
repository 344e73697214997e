"""Explains a failed insert and names a remedy.

Only failures that concern the outbox become errors of Pillarbox. All others (a lost connection, a deadlock, a
serialization failure) pass as the driver raised them, because callers retry their transaction on exactly those types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pillarbox.connections.driver_errors import driver_message
from pillarbox.core.errors import DuplicateEventError, PillarboxError, RecordError, SchemaError
from pillarbox.core.rows import EventRow
from pillarbox.dialects import Dialect, WriteFailure
from pillarbox.statements import Names

_MOST_NAMED = 5


def explain(error: Exception, rows: Sequence[EventRow], dialect: Dialect, names: Names) -> PillarboxError | None:
    """The error to raise in place of the driver's; None: let the driver's pass."""
    found = dialect.explain(error)
    if found is None:
        return None
    reason = driver_message(error)
    match found.failure:
        case WriteFailure.TABLES_MISSING:
            return SchemaError(f"the outbox's tables are missing or too old ({reason}); run `{SchemaError.command}`")
        case WriteFailure.DUPLICATE:
            return _duplicate(rows, found.detail, dialect.after_duplicate)
        case WriteFailure.FORBIDDEN:
            grant = dialect.grant(names, "message", "INSERT")
            return RecordError(f"the role lacks the permission to record ({reason}); {grant}", field="connection")
        case WriteFailure.REJECTED:
            # A table may have stricter limits than this outbox, most likely for the size of payloads.
            return RecordError(
                f"the table rejects an event ({reason}); "
                "`pillarbox schema apply` sets its limits: make the event smaller, or raise them",
            )
        case WriteFailure.ABORTED:
            return RecordError("cannot record: the transaction has already failed; roll back first", field="connection")
        case _:
            assert_never(found.failure)


def _duplicate(rows: Sequence[EventRow], detail: str, advice: str) -> DuplicateEventError:
    """Names the event if the database does, else all events of the call."""
    duplicates = [row for row in rows if f"=({row.event_id}, {row.destination}) " in detail] or list(rows)
    ids = [row.event_id for row in duplicates]
    named = ", ".join(ids[:_MOST_NAMED]) + (" …" if len(ids) > _MOST_NAMED else "")
    which = f"event {named} is" if len(ids) == 1 else f"one of the events {named} is"
    return DuplicateEventError(
        f'{which} in the outbox already{advice}; set duplicate="ignore" to skip it', field="event_id"
    )
