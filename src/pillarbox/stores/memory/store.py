"""The memory store: a bundle of facets over tables in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Self

from pillarbox.admin.admin import Admin
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.lane import LANES
from pillarbox.core.message import Message
from pillarbox.core.store import EVERY_REQUEST, Capabilities, LedgerKind
from pillarbox.plugins import StoreOptions
from pillarbox.stores.memory.admin import MemoryAdmin
from pillarbox.stores.memory.destinations import MemoryDestinations
from pillarbox.stores.memory.diagnosis import MemoryDiagnosis
from pillarbox.stores.memory.lanes import MemoryLanes
from pillarbox.stores.memory.ledger import ledger_of
from pillarbox.stores.memory.messages import MemoryMessages
from pillarbox.stores.memory.pruning import MemoryPruning
from pillarbox.stores.memory.schema import MemorySchema
from pillarbox.stores.memory.statistics import MemoryStatistics
from pillarbox.stores.memory.tables import Tables
from pillarbox.stores.memory.transaction import MemoryTransaction
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
        max_payload: int = StoreOptions.max_payload,
        on_commit: Callable[[Sequence[Message]], None] | None = None,
    ) -> None:
        """
        max_payload: bytes of the largest payload that a transaction accepts, whatever the outbox allows.
        on_commit: called with the messages that a transaction has committed.
        """
        self._max_payload = max_payload
        self._on_commit = on_commit
        self._wire(Tables(lanes=lanes, clock=clock or SystemClock()), history=history, ledger=ledger)

    def clone(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> Self:
        other = type(self).__new__(type(self))
        other._max_payload = self._max_payload
        other._on_commit = self._on_commit
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
            listings=True,
            requests=EVERY_REQUEST,
        )
        self.lanes = MemoryLanes(tables)
        self.messages = MemoryMessages(tables)
        self.writes = MemoryWrites(tables, history=history, ledger=ledger is True)
        self._ledger_kind: LedgerKind = ledger
        self.ledger = ledger_of(ledger, history=history, tables=tables)
        self.destinations = MemoryDestinations(tables)
        self.statistics = MemoryStatistics(tables)
        admin = MemoryAdmin(tables)
        self.admin: Admin = admin
        self.pruning = MemoryPruning(tables)
        self.wakeup = wakeup or MemoryWakeup(tables)
        self.schema = MemorySchema(tables)
        self.diagnosis = MemoryDiagnosis(self.schema, admin)

    def transaction(self) -> MemoryTransaction:
        """A transaction of a producer or a consumer, to be used as a context manager."""
        return MemoryTransaction(self._tables, self._committed, max_payload=self._max_payload)

    def next_due(self) -> datetime | None:
        """When the next delayed event or retry is due; None: nothing is scheduled."""
        with self._tables.lock:
            return min((next(iter(lane.scheduled))[0] for lane in self._tables.lanes if lane.scheduled), default=None)

    def _committed(self, messages: Sequence[Message]) -> None:
        self.wakeup.notify()
        if self._on_commit is not None:
            self._on_commit(messages)

    async def aclose(self) -> None:
        """Nothing to close: recorded events stay as long as the store."""
