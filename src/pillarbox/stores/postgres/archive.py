"""Old rows on their way out by way of a file: read along an index, dropped one by one and by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pillarbox.admin.archive import Stale, Table
from pillarbox.admin.listing import EventDetail
from pillarbox.core.fetch import MAX_BYTES
from pillarbox.core.retention import Retention
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.events import detail_of
from pillarbox.stores.postgres.statements import Statements

_EVER = datetime.min.replace(tzinfo=UTC)


class PostgresArchive:
    """See `pillarbox.admin.archive.Archive`. A day that is empty afterwards goes with the next upkeep."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._count = statements.get("archive_count")
        self._read_history = statements.get("archive_read_history")
        self._read_dead = statements.get("archive_read_dead")
        self._drop_history = statements.get("archive_delete_history")
        self._drop_dead = statements.get("archive_delete_dead")

    async def stale(self, kept: Retention) -> Stale:
        ages = (kept.history, kept.dead, kept.receipts, kept.ledger, kept.audit)
        [counts] = await self._connection.fetch(self._count, *ages, COUNTED + 1)
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
        if table == "history":
            behind = (after.recorded_at, after.id, after.destination) if after else (_EVER, 0, "")
            rows = await self._connection.fetch(self._read_history, older, limit, max_bytes, *behind)
        else:
            letter = (after and after.letter) or 0
            rows = await self._connection.fetch(self._read_dead, older, limit, max_bytes, letter)
        return [detail_of(row) for row in rows]

    async def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        if table == "history":
            gone = await self._connection.fetch(
                self._drop_history,
                [row.event_id for row in rows],
                [row.id for row in rows],
                [row.destination for row in rows],
                [row.published_at for row in rows],
            )
        else:
            gone = await self._connection.fetch(self._drop_dead, [row.letter for row in rows])
        return int(gone[0][0])
