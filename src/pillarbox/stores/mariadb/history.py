"""The days of the history: partitions that are created ahead and dropped whole.

Both commit by themselves and lock the table. If a reader has it, they are left for the next call. What is delivered on
a day without a partition goes into the partition `later`. To create a day moves all rows of `later`, and nothing can be
settled meanwhile: a relay does that only for a few rows, an operator for any number.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from pillarbox.core.errors import SchemaError, StoreUnavailableError
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.driver import execute
from pillarbox.stores.mariadb.lanes import microseconds
from pillarbox.stores.mariadb.statements import MariaDBStatements

DAYS_AHEAD = 7
"""Days of history for which partitions are created."""
MAX_MOVED = 10_000
"""Rows of the partition `later` that a relay moves."""
LONGEST_MOVE = 2.0
"""Seconds that it may take; if it takes longer, they stay."""
_DAY = re.compile(r"p(\d{4})(\d\d)(\d\d)")


class HistoryDays:
    """Creates and drops the partitions of one history."""

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._sql = statements.get

    async def found(self) -> list[date]:
        """The days that have a partition, in their order."""
        rows = await self._connection.fetch(self._sql("history_days"))
        return [date(*map(int, day.groups())) for (name,) in rows if (day := _DAY.fullmatch(str(name)))]

    async def today(self) -> date:
        """The day by the clock of the database."""
        [(today,)] = await self._connection.fetch(self._sql("today"))
        return _day(today)

    async def without_a_day(self) -> int:
        """How many rows are in the partition `later`; at most one more than a relay moves."""
        [(rows,)] = await self._connection.fetch(self._sql("rows_without_a_day"), {"limit": MAX_MOVED + 1})
        return int(rows)

    async def create(self, *, move_all: bool = False) -> int:
        """Create the partitions of today and of the next days; returns how many. With `move_all`, whatever it takes."""
        newest = max(await self.found(), default=date.min)
        today = await self.today()
        first = max(today, newest + timedelta(days=1))
        last = today + timedelta(days=DAYS_AHEAD)
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        if not days:
            return 0
        if not move_all and await self.without_a_day() > MAX_MOVED:
            return 0
        parts = (self._sql("history_day", name=_name(day), end=str(day + timedelta(days=1))) for day in days)
        longest = "0" if move_all else str(LONGEST_MOVE)
        sql = self._sql("create_history_days", days=", ".join(parts), longest=longest)
        return len(days) if await self._alter(sql, unbounded=move_all) else 0

    async def drop(self, older: float) -> int:
        """Drop the partitions of days that ended longer ago than this; returns how many."""
        given = {"older": microseconds(max(older, 0))}
        [(newest,)] = await self._connection.fetch(self._sql("newest_day_to_drop"), given)
        days = [day for day in await self.found() if day <= _day(newest)]
        names = ", ".join(map(_name, days))
        return len(days) if days and await self._alter(self._sql("drop_history_days", days=names)) else 0

    async def _alter(self, sql: str, *, unbounded: bool = False) -> bool:
        """Whether the table was changed; not while a reader has it, if another relay changed it meanwhile, if it takes
        too long, or without the privilege: deliveries go on, and the doctor reports that days are missing."""
        try:
            if unbounded:
                async with self._connection.open() as connection:
                    await execute(connection, sql, {})
            else:
                await self._connection.run(sql)
        except (StoreUnavailableError, SchemaError) as error:
            if not any(mark in str(error) for mark in _LATER):
                raise
            return False
        return True


_LATER = (
    "permission denied",
    "max_statement_time exceeded",
    "Lock wait timeout",
    "Error in list of partitions",
    "Duplicate partition name",
    "must be strictly increasing",
)


def _day(number: int) -> date:
    return date(number // 10_000, number // 100 % 100, number % 100)


def _name(day: date) -> str:
    return f"p{day}".replace("-", "")
