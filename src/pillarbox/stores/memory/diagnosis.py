"""What a store in this process can say of itself: not much can be wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.admin import NoAdmin
from pillarbox.admin.diagnosis import (
    LONG_TRANSACTION,
    MANY_ATTEMPTS,
    Check,
    RetriedSummary,
    TableSizes,
    schema_checks,
)
from pillarbox.stores.memory.schema import MemorySchema


class MemoryDiagnosis:
    """See `pillarbox.admin.diagnosis.Diagnosis`."""

    def __init__(self, schema: MemorySchema, admin: NoAdmin) -> None:
        self._schema = schema
        self._admin = admin

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        return schema_checks(self._schema)

    async def table_sizes(self) -> TableSizes:
        self._admin.refuse("table sizes")

    async def retried(self, more_than: int = MANY_ATTEMPTS) -> RetriedSummary:
        self._admin.refuse("the search for messages that were retried often")
