"""Retention in small bites: the oldest goes first, and nothing that waits is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pillarbox.core.receipt import Receipt
from pillarbox.stores.memory.tables import Tables, verb


class MemoryUpkeep:
    """See `pillarbox.core.store.Upkeep`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def prepare(self) -> None:
        """Nothing: there is always room."""

    @verb
    def prune(
        self, *, history: float | None, dead: float | None, receipts: float | None = None, most: int = 1000
    ) -> int:
        delivered = list(islice(self._delivered_before(history), most))
        for number in delivered:
            del self._tables.history[number]
        given_up = list(islice(self._dead_before(dead), most - len(delivered)))
        for number in given_up:
            del self._tables.dead[number]
        admitted = list(islice(self._admitted_before(receipts), most - len(delivered) - len(given_up)))
        for receipt in admitted:
            del self._tables.receipts[receipt]
        return len(delivered) + len(given_up) + len(admitted)

    def _delivered_before(self, age: float | None) -> Iterator[int]:
        if age is not None:
            limit = self._tables.after(-age)
            yield from (n for n, row in self._tables.history.items() if row.published_at <= limit)

    def _dead_before(self, age: float | None) -> Iterator[int]:
        if age is not None:
            limit = self._tables.after(-age)
            yield from (n for n, row in self._tables.dead.items() if row.died_at <= limit)

    def _admitted_before(self, age: float | None) -> Iterator[Receipt]:
        if age is not None:
            limit = self._tables.after(-age)
            yield from (receipt for receipt, at in self._tables.receipts.items() if at <= limit)
