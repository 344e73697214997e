"""Old rows on their way out by way of a file: read along an index, dropped one by one and by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pillarbox.admin.archive import Stale, Table, within
from pillarbox.admin.listing import EventDetail
from pillarbox.core.fetch import MAX_BYTES
from pillarbox.core.retention import Retention
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.events import EVER, detail_of, written
from pillarbox.stores.sqlite.statements import Statements


class SqliteArchive:
    """See `pillarbox.admin.archive.Archive`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._count = statements.get("archive_count")
        self._read_history = statements.get("archive_read_history")
        self._read_dead = statements.get("archive_read_dead")
        self._drop_history = statements.get("archive_delete_history")
        self._drop_dead = statements.get("archive_delete_dead")

    async def stale(self, kept: Retention) -> Stale:
        given = asdict(kept) | {"most": COUNTED + 1}
        [counts] = await self._connection.read(lambda db: db.execute(self._count, given).fetchall())
        return Stale(*counts)

    async def read(
        self,
        table: Table,
        *,
        older: float,
        limit: int,
        after: EventDetail | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> list[EventDetail]:
        given = {
            "older": older,
            "limit": limit,
            "letter": (after and after.letter) or 0,
            "recorded_at": written(after.recorded_at) if after else EVER,
            "id": after.id if after else 0,
            "destination": after.destination if after else "",
        }
        sql = self._read_history if table == "history" else self._read_dead
        return await self._connection.read(lambda db: within(map(detail_of, db.execute(sql, given)), max_bytes))

    async def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        if table == "history":
            sql, chosen = self._drop_history, json.dumps([_name(row) for row in rows])
        else:
            sql, chosen = self._drop_dead, json.dumps([row.letter for row in rows])
        return await self._connection.write(lambda db: db.execute(sql, {"rows": chosen}).rowcount)


def _name(row: EventDetail) -> list[object]:
    return [row.event_id, row.id, row.destination, row.published_at and written(row.published_at)]
