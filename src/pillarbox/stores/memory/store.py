"""The memory store: a bundle of facets over tables in this process."""

from __future__ import annotations

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.lane import LANES
from pillarbox.core.store import EVERY_REQUEST, Capabilities, LedgerKind
from pillarbox.plugins import StoreOptions
from pillarbox.stores.memory.admin import MemoryAdmin
from pillarbox.stores.memory.destinations import MemoryDestinations
from pillarbox.stores.memory.diagnosis import MemoryDiagnosis
from pillarbox.stores.memory.lanes import MemoryLanes
from pillarbox.stores.memory.ledger import ledger_of
from pillarbox.stores.memory.messages import MemoryMessages
from pillarbox.stores.memory.schema import MemorySchema
from pillarbox.stores.memory.statistics import MemoryStatistics
from pillarbox.stores.memory.tables import Tables
from pillarbox.stores.memory.transaction import MemoryTransaction
from pillarbox.stores.memory.upkeep import MemoryUpkeep
from pillarbox.stores.memory.wakeup import MemoryWakeup
from pillarbox.stores.memory.writes import MemoryWrites


class MemoryStore:
    """Messages in the memory of this process.

    Record with `with store.transaction() as tx: outbox.record(tx, event)`. May be used from several threads.
    """

    def __init__(
        self,
        *,
        lanes: int = LANES,
        clock: Clock | None = None,
        history: bool = StoreOptions.history,
        ledger: LedgerKind = StoreOptions.ledger,
    ) -> None:
        self._wire(Tables(lanes=lanes, clock=clock or SystemClock()), history=history, ledger=ledger)

    def beside(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> MemoryStore:
        other = MemoryStore.__new__(MemoryStore)
        other._wire(
            self._tables,
            history=self._history if history is None else history,
            ledger=self._ledger_kind if ledger is None else ledger,
            wakeup=self.wakeup,
        )
        return other

    def _wire(self, tables: Tables, *, history: bool, ledger: LedgerKind, wakeup: MemoryWakeup | None = None) -> None:
        self._tables = tables
        self._history = history
        self.capabilities = Capabilities(
            lanes=len(tables.lanes),
            many_writers=True,
            survives_restart=False,
            partitions=False,
            admin=False,
            requests=EVERY_REQUEST,
        )
        self.lanes = MemoryLanes(tables)
        self.messages = MemoryMessages(tables)
        self.writes = MemoryWrites(tables, history=history, ledger=ledger is True)
        self._ledger_kind: LedgerKind = ledger
        self.ledger = ledger_of(ledger, history=history, tables=tables)
        self.destinations = MemoryDestinations(tables)
        self.statistics = MemoryStatistics(tables)
        self.admin = MemoryAdmin(tables)
        self.upkeep = MemoryUpkeep(tables)
        self.wakeup = wakeup or MemoryWakeup(tables)
        self.schema = MemorySchema(tables)
        self.diagnosis = MemoryDiagnosis(self.schema, self.admin)

    def transaction(self) -> MemoryTransaction:
        """A producer's transaction, to be used as a context manager."""
        return MemoryTransaction(self._tables, self.wakeup.notify)

    async def aclose(self) -> None:
        """Nothing to close: recorded events stay as long as the store."""
