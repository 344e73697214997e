"""What a store in this process can say of itself: not much can be wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.diagnosis import (
    LONG_TRANSACTION,
    LOOKED_AT,
    MANY_TRIES,
    Check,
    TableSizes,
    Tried,
    commonest,
    schema_checks,
)
from pillarbox.stores.memory.schema import MemorySchema
from pillarbox.stores.memory.tables import Tables, verb


class MemoryDiagnosis:
    """See `pillarbox.admin.diagnosis.Diagnosis`."""

    def __init__(self, tables: Tables, schema: MemorySchema) -> None:
        self._tables = tables
        self._schema = schema

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        return schema_checks(self._schema)

    async def footprint(self) -> TableSizes:
        return TableSizes(())

    @verb
    def tried(self, more_than: int = MANY_TRIES) -> Tried:
        first = sorted(
            self._tables.waiting.values(), key=lambda stored: (stored.message.recorded_at, stored.message.id)
        )
        return commonest(
            (stored.last_error or "", stored.message.event_id)
            for stored in first[:LOOKED_AT]
            if stored.message.failures > more_than
        )
