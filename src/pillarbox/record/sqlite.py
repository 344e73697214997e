"""Recording on SQLite: one INSERT for any number of events.

SQLite has one writer at a time, so there are no locks. A relay on the same file polls, so there are no notifications.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pillarbox.connections import Statement, Steps
from pillarbox.core.clock import timestamp
from pillarbox.core.row import Row
from pillarbox.statements import Names, StatementSet, load

_MILLISECOND = timedelta(milliseconds=1)


class SqliteAppend:
    """The statement of one outbox."""

    def __init__(self, names: Names, *, ignore_duplicates: bool) -> None:
        variants = ["ignore_duplicates"] if ignore_duplicates else []
        self._append = StatementSet(names, load("pillarbox.record", "sqlite")).get("append", *variants)

    def steps(self, rows: Sequence[Row]) -> Steps[None]:
        yield Statement(self._append, (b"".join(row.payload for row in rows), _texts(rows)))


def _texts(rows: Sequence[Row]) -> str:
    """All columns but the payloads, and the position of each payload in the blob (SQLite counts from 1)."""
    given: list[list[object]] = []
    start = 1
    for row in rows:
        *texts, occurred_at, available_at = row[:6] + row[7:]
        given.append([*texts, _time(occurred_at), _time(available_at, comparable=True), start, len(row.payload)])
        start += len(row.payload)
    return json.dumps(given, ensure_ascii=False)


def _time(at: datetime | None, *, comparable: bool = False) -> str | None:
    """A time as SQLite's functions read it. Times that SQL compares have milliseconds, as SQLite's clock has; they are
    rounded up, so that no event is due too early."""
    if at is None:
        return None
    if not comparable:
        return timestamp(at)
    utc = at.astimezone(UTC).replace(tzinfo=None)
    beyond = utc.microsecond % 1000
    if beyond and utc <= datetime.max - _MILLISECOND:
        utc += _MILLISECOND - timedelta(microseconds=beyond)
    return utc.isoformat(timespec="milliseconds") + "Z"
