"""What a failed admission or a failed write of statistics means, and what to do about it.

As with recording, only failures that tell something about the inbox get a name of ours; all others pass as the driver
raised them, because callers retry their transaction on exactly those types.
"""

from __future__ import annotations

from typing import NamedTuple

from pillarbox.connections import driver_errors
from pillarbox.core.errors import InboxError, PillarboxError, SchemaError
from pillarbox.statements import Names


class Deed(NamedTuple):
    """What was to be done, and what a role needs for it."""

    word: str
    table: str
    rights: str


RECORDS = Deed("admit", "inbox", "INSERT")
STATISTICS = Deed("write consumer statistics", "inbox_statistics", "SELECT, INSERT, UPDATE")


def explain(error: Exception, names: Names, deed: Deed) -> PillarboxError | None:
    """The error to raise in place of the driver's, or None to let that pass."""
    if driver_errors.tables_missing(error):
        told = driver_errors.driver_message(error)
        return SchemaError(f"the inbox's table is missing or too old ({told}); run `pillarbox schema apply`")
    match driver_errors.sqlstate(error):
        case "42501":
            return _not_allowed(error, names, deed)
        case "25P02":
            return InboxError("the transaction has already failed, so nothing can be admitted in it; roll back first")
        case _:
            return None


def _not_allowed(error: Exception, names: Names, deed: Deed) -> InboxError:
    table = names.qualified(names.prefix + deed.table)
    told = driver_errors.driver_message(error)
    return InboxError(
        f"the role may not {deed.word} ({told}); GRANT {deed.rights} ON {table} to it, and "
        f'USAGE ON SCHEMA "{names.schema}"'
    )
