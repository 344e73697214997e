"""Recording on PostgreSQL: one INSERT, whatever the number of events, with the doorbell in the same statement.

A producer needs INSERT on the message table and, to ring, SELECT on one column of the relay table. Whether it may
look is asked once per driver connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from pillarbox.core.names import Names
from pillarbox.core.row import Row
from pillarbox.core.sqlfiles import statement
from pillarbox.handles import Database, Statement, Steps

_PACKAGE = "pillarbox.record"


class PostgresAppend:
    """The statements of one outbox."""

    def __init__(self, names: Names, *, ignore_duplicates: bool, ring: bool, strict_order: bool) -> None:
        on_conflict = statement(_PACKAGE, "on_conflict", names) if ignore_duplicates else ""
        self._one = _Append("postgres/append_one", names, on_conflict)
        self._many = _Append("postgres/append", names, on_conflict)
        self._may_look = statement(_PACKAGE, "postgres/may_look", names)
        self._lock_keys = statement(_PACKAGE, "postgres/lock_keys", names)
        self._ring = ring
        self._strict_order = strict_order
        self._allowed: WeakKeyDictionary[object, bool] = WeakKeyDictionary()

    def steps(self, database: Database, rows: Sequence[Row]) -> Steps[None]:
        """Locks first, so that the places in line are drawn in the order in which the writers commit."""
        ring = self._ring and (yield from self._may_ring(database.connection))
        if self._strict_order and (keys := sorted({row.key for row in rows if row.key is not None})):
            yield Statement(self._lock_keys, (keys,))
        if len(rows) == 1:
            yield Statement(self._one.sql(ring=ring), rows[0])
        else:
            columns = tuple(list(column) for column in zip(*rows, strict=True))
            yield Statement(self._many.sql(ring=ring), columns)

    def _may_ring(self, connection: object) -> Steps[bool]:
        known = self._allowed.get(connection)
        if known is None:
            ((known,),) = yield Statement(self._may_look)
            self._allowed[connection] = known
        return bool(known)


class _Append:
    """One form of the INSERT, alone and with the doorbell around it."""

    def __init__(self, name: str, names: Names, on_conflict: str) -> None:
        self._quiet = statement(_PACKAGE, name, names, on_conflict=on_conflict)
        self._ringing = statement(_PACKAGE, "postgres/append_and_ring", names, append=self._quiet)

    def sql(self, *, ring: bool) -> str:
        return self._ringing if ring else self._quiet
