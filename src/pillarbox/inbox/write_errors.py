"""Explains a failed write to the inbox and names a remedy.

As with recording, only failures that concern the inbox become errors of Pillarbox. All others pass as the driver raised
them, because callers retry their transaction on exactly those types.
"""

from __future__ import annotations

from typing import NamedTuple

from pillarbox.connections.driver_errors import driver_message
from pillarbox.core.errors import InboxError, PillarboxError, SchemaError
from pillarbox.dialects import Dialect, WriteFailure
from pillarbox.statements import Names


class InboxWrite(NamedTuple):
    """A write to the inbox, and the privileges that it needs."""

    action: str
    table: str
    privileges: str


ADMIT = InboxWrite("admit events", "inbox", "INSERT")
ADD_STATISTICS = InboxWrite("write consumer statistics", "inbox_statistics", "SELECT, INSERT, UPDATE")


def explain(error: Exception, write: InboxWrite, dialect: Dialect, names: Names) -> PillarboxError | None:
    """The error to raise in place of the driver's; None: let the driver's pass."""
    found = dialect.explain(error)
    reason = driver_message(error)
    match None if found is None else found.failure:
        case WriteFailure.TABLES_MISSING:
            return SchemaError(f"the inbox's table is missing or too old ({reason}); run `{SchemaError.command}`")
        case WriteFailure.FORBIDDEN:
            grant = dialect.grant(names, write.table, write.privileges)
            return InboxError(f"the role lacks the permission to {write.action} ({reason}); {grant}")
        case WriteFailure.ABORTED:
            return InboxError("cannot admit an event: the transaction has already failed; roll back first")
        case _:
            return None
