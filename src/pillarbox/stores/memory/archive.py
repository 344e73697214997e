"""Old rows on their way out by way of a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pillarbox.admin.archive import Stale, Table, within
from pillarbox.admin.listing import EventDetail
from pillarbox.core.fetch import MAX_BYTES
from pillarbox.core.retention import Retention
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.memory.events import delivered, given_up
from pillarbox.stores.memory.tables import Tables, verb
from pillarbox.stores.memory.upkeep import stale


class MemoryArchive:
    """See `pillarbox.admin.archive.Archive`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def stale(self, kept: Retention) -> Stale:
        return Stale._make(min(sum(1 for _ in old), COUNTED + 1) for _, old in stale(self._tables, kept))

    @verb
    def read(
        self,
        table: Table,
        *,
        older: float,
        limit: int,
        after: EventDetail | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> list[EventDetail]:
        found = sorted(self._old(table, older).values(), key=_place)
        later = [detail for detail in found if after is None or _place(detail) > _place(after)]
        return within(later[:limit], max_bytes)

    @verb
    def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        names = {_place(row) for row in rows}
        gone = [number for number, detail in self._rows(table).items() if _place(detail) in names]
        for number in gone:
            (self._tables.history if table == "history" else self._tables.dead).pop(number)
        return len(gone)

    def _rows(self, table: Table) -> dict[int, EventDetail]:
        if table == "history":
            return {number: delivered(row) for number, row in self._tables.history.items()}
        return {number: given_up(number, row) for number, row in self._tables.dead.items()}

    def _old(self, table: Table, older: float) -> dict[int, EventDetail]:
        limit = self._tables.after(-older)
        return {
            number: detail
            for number, detail in self._rows(table).items()
            if (when := detail.published_at or detail.died_at) is not None and when <= limit
        }


def _place(detail: EventDetail) -> tuple[int, datetime, int, str]:
    return detail.letter or 0, detail.recorded_at, detail.id, detail.destination
