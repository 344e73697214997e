"""Archive: old rows are read along an index, and deleted by their identities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pillarbox.admin.archive import ExpiredCounts, Table
from pillarbox.admin.listing import EventDetail
from pillarbox.core.fetch import MAX_BYTES
from pillarbox.core.message import EARLIEST
from pillarbox.core.statistics import COUNTED
from pillarbox.core.store import Retention
from pillarbox.stores.admin.engine import Engine, StatementSteps
from pillarbox.stores.admin.events import detail_of


class SqlArchive:
    """See `pillarbox.admin.archive.Archive`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._count = engine.statement("archive_count")
        self._count_inbox = engine.statement("expired_inbox_records")
        self._read = {table: engine.statement(f"archive_read_{table}") for table in ("history", "dead")}
        self._delete_attempts = engine.statement("delete_attempts")
        self._progress = engine.statement("audit_progress")
        self._drop = {
            "history": engine.statement("archive_delete_history"),
            "dead": engine.statement("delete_dead_letters"),
        }

    async def count_expired(self, kept: Retention) -> ExpiredCounts:
        [counts] = await self._engine.read(self._count, asdict(kept) | {"most": COUNTED + 1})
        return ExpiredCounts(*counts)

    async def count_expired_inbox(self, retention: float) -> dict[str, int]:
        rows = await self._engine.read(self._count_inbox, {"inbox": retention, "most": COUNTED + 1})
        return {str(consumer): int(count) for consumer, count in rows}

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
            "bytes": max_bytes,
            "dead_letter_id": (after and after.dead_letter_id) or 0,
            "recorded_at": after.recorded_at if after else EARLIEST,
            "id": after.id if after else 0,
            "destination": after.destination if after else "",
        }
        rows = await self._engine.read(self._read[table], given)
        return [detail_of(self._engine, row) for row in rows]

    async def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        return len(await self._engine.write(self._drop[table], _identities(rows)))

    async def erase(self, rows: Sequence[EventDetail], *, event_ids: Sequence[str], bulk_action: int) -> int:
        return await self._engine.transact(self._erased(rows, event_ids, bulk_action))

    def _erased(self, rows: Sequence[EventDetail], event_ids: Sequence[str], bulk_action: int) -> StatementSteps[int]:
        done = len((yield self._drop["history"], _identities(rows))) if rows else 0
        yield self._delete_attempts, {"event_ids": [*event_ids]}
        yield self._progress, {"done": done, "bulk_action": bulk_action}
        return done


def _identities(rows: Sequence[EventDetail]) -> dict[str, object]:
    return {
        "dead_letter_ids": [row.dead_letter_id for row in rows],
        "event_ids": [row.event_id for row in rows],
        "ids": [row.id for row in rows],
        "destinations": [row.destination for row in rows],
        "times": [row.published_at for row in rows],
    }
