"""The tables are made with the store, so there is nothing to apply and nothing that could be missing."""

from __future__ import annotations

from pillarbox.core.store import MigrationScript, SchemaStatus
from pillarbox.stores.memory.tables import Tables, atomic


class MemorySchema:
    """See `pillarbox.core.store.Schema`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def sql(self, *, since: int = 0, aliases: bool = False) -> str:
        return "-- The memory store has no tables of a database.\n"

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        return []

    def downgrades(self, *, to: int, since: int | None = None, discard_pending: bool = False) -> list[MigrationScript]:
        return []

    def statements(self) -> None:
        """The memory store sends no SQL."""

    @atomic
    def apply(self, *, aliases: bool = False) -> list[str]:
        return []

    @atomic
    def check(self) -> None:
        """Nothing can be wrong."""

    @atomic
    def status(self) -> SchemaStatus:
        return SchemaStatus(version=1, required=1)

    async def prepare(self) -> None:
        """Nothing: there are no partitions."""
