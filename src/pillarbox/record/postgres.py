"""Recording on PostgreSQL: one INSERT for any number of events, which also notifies an idle relay.

A producer needs no privilege but INSERT on the message table: an advisory lock shows whether a relay is idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.connections import Statement, Steps
from pillarbox.core.row import Row
from pillarbox.statements import Names, StatementSet, load


class PostgresAppend:
    """The statements of one outbox."""

    def __init__(self, names: Names, *, ignore_duplicates: bool, notify: bool, strict_order: bool) -> None:
        statements = StatementSet(names, load("pillarbox.record", "postgres"))
        chosen = {"ignore_duplicates": ignore_duplicates, "notify": notify}
        variants = [variant for variant, wanted in chosen.items() if wanted]
        self._one = statements.get("append_one", *variants)
        self._many = statements.get("append", *variants)
        self._lock_keys = statements.get("lock_keys")
        self._strict_order = strict_order

    def steps(self, rows: Sequence[Row]) -> Steps[None]:
        """Lock the keys before the insert, so that sequences are assigned in the order in which the writers commit."""
        if self._strict_order and (keys := sorted({row.key for row in rows if row.key is not None})):
            yield Statement(self._lock_keys, (keys,))
        if len(rows) == 1:
            yield Statement(self._one, rows[0])
        else:
            yield Statement(self._many, tuple(list(column) for column in zip(*rows, strict=True)))
